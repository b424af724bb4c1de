package workspace

import "golang.org/x/sys/unix"

// linkThenUnlink gives a file a second name, which must be new, and removes the first. Between both
// it has two names; the first is a temporary one, which recovery removes.
func linkThenUnlink(d dir, from, to string) error {
	if err := call(func() error { return unix.Linkat(d.fd, from, d.fd, to, 0) }); err != nil {
		return err
	}
	return call(func() error { return unix.Unlinkat(d.fd, from, 0) })
}
