package tools

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/handlers/toolhost/tool"
)

// How long lockFile waits between two tries.
const (
	firstLockWait = 50 * time.Microsecond
	lastLockWait  = 5 * time.Millisecond
)

// lockFile takes the advisory lock of f, unix.LOCK_EX or LOCK_SH, that other writers take as well
// (toolhost §4.7 "Memory"); closing f releases it. The call waits without its place.
func lockFile(ctx context.Context, f *os.File, how int) error {
	err := tryLock(ctx, f, how)
	if err == unix.EWOULDBLOCK {
		err = tool.Aside(ctx, func() error { return waitForLock(ctx, f, how) })
	}
	return err
}

// waitForLock polls: ctx could not end a wait in the system.
func waitForLock(ctx context.Context, f *os.File, how int) error {
	for wait := firstLockWait; ; wait = min(2*wait, lastLockWait) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		if err := tryLock(ctx, f, how); err != unix.EWOULDBLOCK {
			return err
		}
	}
}

// tryLock fails with unix.EWOULDBLOCK if another writer has the lock.
func tryLock(ctx context.Context, f *os.File, how int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return retry(func() error { return unix.Flock(int(f.Fd()), how|unix.LOCK_NB) })
}

// openLocked opens the file name in d to append to, makes it if missing, and holds its lock until
// it is closed. A file renamed or removed during the wait is given up for the one with the name.
func openLocked(ctx context.Context, d *dir, name string) (*os.File, error) {
	for {
		f, err := d.open(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, filePerm)
		if err != nil {
			return nil, err
		}
		if err = lockFile(ctx, f, unix.LOCK_EX); err == nil && isEntryOf(d, name, f) {
			return f, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
}

func isEntryOf(d *dir, name string, f *os.File) bool {
	now, err := d.lstat(name)
	if err != nil {
		return false
	}
	var mine unix.Stat_t
	err = retry(func() error { return unix.Fstat(int(f.Fd()), &mine) })
	return err == nil && mine.Dev == now.Dev && mine.Ino == now.Ino
}

func sizeOf(f *os.File) (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// appendWhole appends data to f, which is size long and locked, in one write, and makes it durable
// if sync is set. If that fails the file is as it was before.
func appendWhole(f *os.File, size int64, data []byte, sync bool) error {
	_, err := f.Write(data)
	if err == nil && sync {
		err = f.Sync()
	}
	if err != nil {
		_ = f.Truncate(size)
	}
	return err
}

// appendLine appends line, with its "\n", to f as appendWhole does. A line without an end, left by
// a killed writer, gets one in the same write, so that the two stay apart.
func appendLine(f *os.File, size int64, line []byte, sync bool) error {
	if size > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	return appendWhole(f, size, line, sync)
}
