package tool

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Place is one of few places for built-in tools off the loops. Only its tool's goroutine uses it.
type Place interface {
	// Worked notes n bytes more of work. It makes a long call wait, until ctx ends, for its turn.
	Worked(ctx context.Context, n int64) error
	// Leave gives the place up, Return waits for one again until ctx ends.
	Leave()
	Return(ctx context.Context) error
}

type placeKey struct{}

// WithPlace returns a context that carries p to the tool that runs with it.
func WithPlace(ctx context.Context, p Place) context.Context {
	return context.WithValue(ctx, placeKey{}, p)
}

// Worked notes n bytes more of work in ctx. A tool calls it before each piece of work whose amount
// the caller decides, so that small calls do not wait for large ones. It fails when ctx ends first.
func Worked(ctx context.Context, n int64) error {
	if p, ok := ctx.Value(placeKey{}).(Place); ok {
		return p.Worked(ctx, n)
	}
	return nil
}

// Aside runs wait, which waits for something else than the processor or a disk and has its own
// bound, without the place of the tool in ctx. It returns wait's error, or why no place came back.
func Aside(ctx context.Context, wait func() error) error {
	p, ok := ctx.Value(placeKey{}).(Place)
	if !ok {
		return wait()
	}
	p.Leave()
	err := wait()
	if back := p.Return(ctx); err == nil {
		err = back
	}
	return err
}

// EndWithin waits for running, at most for limit: a tool may hang. It reports whether all ended.
func EndWithin(running *sync.WaitGroup, limit time.Duration) bool {
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

// ErrNotRegular is the error of OpenRegular for a device, a fifo and the like.
var ErrNotRegular = errors.New("not a regular file")

// OpenRegular opens a regular file. Neither it nor a read waits for anything but a disk: not for a
// fifo's other end, nor for a line of a kernel file that only claims to be regular.
func OpenRegular(path string) (f *os.File, info fs.FileInfo, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	for err == unix.EINTR {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f = Nonblocking(fd, path)
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		_ = f.Close() // nothing was read
		return nil, nil, err
	}
	return f, info, nil
}

// Nonblocking makes a file of fd whose reads fail where they would wait. While os.NewFile looks,
// O_NONBLOCK must be off, or such a read would wait in the runtime instead.
func Nonblocking(fd int, path string) *os.File {
	_ = unix.SetNonblock(fd, false) // fails for no open descriptor
	f := os.NewFile(uintptr(fd), path)
	_ = unix.SetNonblock(fd, true)
	return f
}

// Under returns path, which counts from base if it is relative, without "." and "..".
func Under(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}
