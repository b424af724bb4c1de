package workers

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// watch reports in which order a worker took its request and wrote to its stdout. Looking at both
// pipes cannot show that, as both have happened when the reader is woken. But the kernel lists
// events at the moment they happen, and an epoll instance returns them in that order.
//
// The pipe of the requests holds one page: it is full with anything in it, and taking that out is
// an event. For a long request it is widened once the worker has taken the first of it.
type watch struct {
	file   *os.File
	fd     int
	events [2]unix.EpollEvent
}

// widePipe is what the pipe holds for the rest of a long request, in bytes: what pipes hold anyway.
const widePipe = 64 << 10

const (
	ofRequest = iota
	ofReply
)

// newWatch watches our ends of the pipes of requests, of which theirs is the other, and replies.
func newWatch(in, theirs, out *os.File) (*watch, error) {
	if err := resize(theirs.Fd(), 1); err != nil { // rounded up to a page
		return nil, err
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	o := &watch{file: os.NewFile(uintptr(fd), "epoll"), fd: fd}
	if err := errors.Join(o.add(in, unix.EPOLLOUT, ofRequest), o.add(out, unix.EPOLLIN, ofReply)); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

func (o *watch) add(f *os.File, events uint32, what int32) error {
	return control(f, func(fd uintptr) error {
		e := unix.EpollEvent{Events: events | unix.EPOLLET, Fd: what}
		return os.NewSyscallError("epoll_ctl", unix.EpollCtl(o.fd, unix.EPOLL_CTL_ADD, int(fd), &e))
	})
}

func control(f *os.File, do func(fd uintptr) error) (err error) {
	c, failed := f.SyscallConn()
	if failed == nil {
		failed = c.Control(func(fd uintptr) { err = do(fd) })
	}
	return errors.Join(failed, err)
}

// look returns what happened since its last call: took, the worker took the request; spoke, it
// wrote or closed its stdout; first, before it took anything. It does not allocate.
func (o *watch) look() (took, spoke, first bool) {
	if o == nil {
		return true, true, false
	}
	n, _ := unix.EpollWait(o.fd, o.events[:], 0) // -1: nothing is known to have happened
	for i := range max(n, 0) {
		switch e := &o.events[i]; {
		case e.Fd == ofReply:
			spoke, first = true, !took
		case e.Events&unix.EPOLLOUT != 0: // else the worker has gone without it
			took = true
		}
	}
	return took, spoke, first
}

// widen waits until the worker has taken what is in the pipe of the requests, and widens it.
func (o *watch) widen(in *os.File) error {
	if o == nil {
		return nil
	}
	c, err := in.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = c.Write(func(fd uintptr) bool {
		if !ready(fd, unix.POLLOUT) {
			return false
		}
		failed = resize(fd, widePipe)
		return true
	})
	return errors.Join(err, failed)
}

func (o *watch) narrow(in *os.File) error {
	if o == nil {
		return nil
	}
	return control(in, func(fd uintptr) error { return resize(fd, 1) })
}

func resize(fd uintptr, size int) error {
	_, err := unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size)
	return os.NewSyscallError("fcntl", err)
}

func (o *watch) close() {
	if o != nil {
		_ = o.file.Close() // nothing is written to it
	}
}

// canWatch tries whether this kernel reports the order, as it does but promises nowhere.
func canWatch() bool {
	var in, out pipe
	defer in.close()
	defer out.close()
	if in.open() != nil || out.open() != nil {
		return false
	}
	o, err := newWatch(in.w, in.r, out.r)
	if err != nil {
		return false
	}
	defer o.close()
	o.look() // a pipe that is empty may be written to
	var b [2]byte
	try := func(steps ...func([]byte) (int, error)) (took, spoke, first, ok bool) {
		for _, step := range steps {
			if n, err := step(b[:1]); n != 1 || err != nil {
				return false, false, false, false
			}
		}
		took, spoke, first = o.look()
		_, err := out.r.Read(b[:])
		return took, spoke, first, err == nil
	}
	for range 2 {
		took, spoke, first, ok := try(in.w.Write, in.r.Read, out.w.Write)
		if !took || !spoke || first || !ok {
			return false
		}
		if took, spoke, first, ok = try(in.w.Write, out.w.Write, in.r.Read); !took || !spoke || !first || !ok {
			return false
		}
	}
	return true
}
