package workspace

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"

	"trunkline/engine/projects/errcode"
)

// refusal is a reason of ours for not touching a file. It is the rule token of its detail.
type refusal string

// The refusals.
const (
	isSymlink    refusal = "symlink"
	isNotRegular refusal = "not_regular"
	isNotDir     refusal = "not_a_directory"
	isTooLarge   refusal = "too_large"
	isChanged    refusal = "changed"
	isMisread    refusal = "read_back"
)

// Error implements error.
func (r refusal) Error() string { return string(r) }

// faultOf returns the fault of an error of the file or directory rel. Its detail has the system's
// words for the error and no absolute path.
func faultOf(err error, rel string) *errcode.Fault {
	if err == nil {
		return nil
	}
	var f *errcode.Fault
	if errors.As(err, &f) {
		return f
	}
	var r refusal
	if errors.As(err, &r) {
		return refused(r, rel)
	}
	var no syscall.Errno
	if !errors.As(err, &no) {
		if errors.Is(err, fs.ErrNotExist) {
			return errcode.New("FS-001", "missing: "+rel, rel)
		}
		return errcode.New("FS-002", "input/output error: "+rel, rel)
	}
	detail := no.Error() + ": " + rel
	switch no {
	case unix.ENOSPC, unix.EDQUOT:
		return errcode.New("FS-004", detail)
	case unix.ENOENT, unix.ENOTDIR, unix.ENAMETOOLONG, unix.EISDIR:
		return errcode.New("FS-001", detail, rel)
	case unix.ELOOP:
		return errcode.New("SEC-002", "symlink: "+rel, rel)
	case unix.EWOULDBLOCK, unix.EBUSY, unix.ETXTBSY:
		return errcode.New("FS-005", detail, rel)
	case unix.EEXIST:
		return errcode.New("VAL-005", "target_exists: "+rel)
	case unix.EMFILE, unix.ENFILE, unix.ENOMEM:
		return errcode.New("RES-004", detail)
	}
	return errcode.New("FS-002", detail, rel)
}

func refused(r refusal, rel string) *errcode.Fault {
	detail := string(r) + ": " + rel
	switch r {
	case isSymlink, isNotRegular:
		return errcode.New("SEC-002", detail, rel)
	case isTooLarge:
		return errcode.New("RES-002", detail)
	case isChanged:
		return errcode.New("VAL-005", detail)
	case isNotDir:
		return errcode.New("FS-001", detail, rel)
	}
	return errcode.New("FS-002", detail, rel)
}

// damaged returns the fault of a file of .exacta that does not have the form it was written in.
func damaged(detail string) *errcode.Fault { return errcode.New("ST-002", detail) }

// isMissing reports whether err means that there is no such file.
func isMissing(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, isNotDir)
}
