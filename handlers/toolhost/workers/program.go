package workers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/engine/procgroup"
)

// maxProgram is the largest file that is hashed before a start, in bytes: a second of work.
const maxProgram = 512 << 20

const (
	// hashStep is how much is hashed between two looks at the deadline.
	hashStep = 256 << 10
	// changeTick is longer than what the clock of the change times of files may stand still.
	changeTick = 20 * time.Millisecond
)

var (
	// errHash refuses a file that is not the one the manifest means (toolhost §4.10).
	errHash     = errors.New("hash mismatch")
	errTooLarge = errors.New("too large to be hashed")
)

// identity identifies a file and its content: the change time cannot be set.
type identity struct {
	device, inode uint64
	size          int64
	modified      unix.Timespec
	changed       unix.Timespec
}

func identityOf(st *unix.Stat_t) identity {
	return identity{uint64(st.Dev), st.Ino, st.Size, st.Mtim, st.Ctim}
}

// program is the file that a process is started from. With a hash, it is open from the hash on:
//
//   - A native program is started from this descriptor. Where the system cannot do that (no /proc,
//     not Linux), and through a wrapper, it is treated as a script.
//   - A script is opened by its interpreter, by its path. So the path must mean the same unchanged
//     file before and after the start and at the first reply: else the process is killed.
//
// A file that is rewritten differs by its change time. What is left: what a swapped script did
// before it was found out; a script that is read on after the first reply; a path that pointed
// elsewhere only while the interpreter opened it; writes through a mapping, and change times that
// stand still for longer than changeTick; and an interpreter, libraries and modules.
type program struct {
	path   string   // what the command means
	file   *os.File // nil if there is nothing to compare
	id     identity
	native bool // started from file
}

// openProgram opens the program of a hash in hex; "" opens nothing. close must follow.
func openProgram(ctx context.Context, path, want string, limit int64) (p *program, err error) {
	p = &program{path: path}
	if want == "" {
		return p, nil
	}
	if p.file, err = os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0); err != nil { // not a pipe
		return nil, err
	}
	if err := p.check(ctx, want, limit); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *program) check(ctx context.Context, want string, limit int64) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(p.file.Fd()), &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return &fs.PathError{Op: "exec", Path: p.path, Err: fs.ErrPermission}
	}
	if st.Size > limit {
		return fmt.Errorf("%w: %d bytes, more than %d", errTooLarge, st.Size, limit)
	}
	p.id = identityOf(&st)
	if err := grownOld(ctx, time.Unix(p.id.changed.Unix())); err != nil {
		return err
	}
	sum, magic, err := hashOf(ctx, p.file, limit)
	switch {
	case err != nil:
		return err
	case sum != want || !p.same():
		return errHash
	}
	p.native = magic == "\x7fELF"
	return nil
}

// grownOld waits until a change from now on gets another time than the last one has.
func grownOld(ctx context.Context, changed time.Time) error {
	wait := time.Until(changed.Add(changeTick))
	if wait <= 0 || wait > changeTick { // what changed in the future has another time anyway
		return nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hashOf returns the SHA-256 of what r holds, in hex, and the four bytes it begins with.
func hashOf(ctx context.Context, r io.Reader, limit int64) (sum, magic string, err error) {
	h, buf := sha256.New(), make([]byte, hashStep)
	for size := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return "", "", err
		}
		n, err := io.ReadFull(r, buf)
		if size == 0 {
			magic = string(buf[:min(n, 4)])
		}
		if size += int64(n); size > limit { // it grows
			return "", "", fmt.Errorf("%w: more than %d bytes", errTooLarge, limit)
		}
		h.Write(buf[:n])
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return hex.EncodeToString(h.Sum(nil)), magic, nil
		case err != nil:
			return "", "", err
		}
	}
}

// Check reports why no process can be started now, by its hash too; nil if nothing is known.
func (t *Process) Check(ctx context.Context) error {
	path, err := procgroup.Executable(t.cfg.Command[0], t.cfg.Env)
	if err != nil {
		return err
	}
	if err := t.cfg.Wrapper.Check(); err != nil {
		return errWrapper(err)
	}
	if info, err := os.Stat(t.cfg.Dir); t.cfg.Dir != "" && (err != nil || !info.IsDir()) {
		return &fs.PathError{Op: "chdir", Path: t.cfg.Dir, Err: unix.ENOTDIR}
	}
	return checkProgram(ctx, path, t.cfg.SHA256, t.maxProgram)
}

// CheckModule reports why a module cannot be run, as far as its file shows.
func CheckModule(ctx context.Context, path, want string) error {
	if info, err := os.Stat(path); err != nil {
		return err
	} else if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid}
	}
	return checkProgram(ctx, path, want, maxProgram)
}

func checkProgram(ctx context.Context, path, want string, limit int64) error {
	p, err := openProgram(ctx, path, want, limit)
	if err != nil {
		return err
	}
	p.close()
	return nil
}

// same reports whether what is or was started is still the file that was hashed.
func (p *program) same() bool {
	var st unix.Stat_t
	switch {
	case p.id == identity{}:
		return true
	case p.native:
		return unix.Fstat(int(p.file.Fd()), &st) == nil && identityOf(&st) == p.id
	}
	return unix.Stat(p.path, &st) == nil && identityOf(&st) == p.id
}

// begun is same after the start, and lets go of the file. A native program needs no further look
// then: it is what runs, and the kernel lets no process write to it. A script does.
func (p *program) begun() bool {
	same := p.same()
	p.close()
	if p.native {
		p.id = identity{}
	}
	return same
}

func (p *program) close() {
	if p.file != nil {
		_ = p.file.Close() // only read
	}
}
