package pebbledir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// IsFull reports whether an error is that of a full disk or of a quota.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// FromSystem reports whether an error comes from the system and not from the content of a file. A
// missing file counts as content of its directory.
func FromSystem(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && errno != syscall.ENOENT
}

var (
	fileName     = regexp.MustCompile(`[^\s"':()]*\b(?:\d{6,}\.(?:sst|log|blob)|MANIFEST-\d+|OPTIONS-\d+)`)
	missingTable = regexp.MustCompile(`file (\d{6,}) \(type sstable\)`)
)

// FileIn returns the file of pebble that a text of it names, as it names it, "" if it names none.
func FileIn(text string) string { return fileName.FindString(text) }

// MissingTable returns the name of the SSTable that a text of pebble calls missing, "" if it calls
// none.
func MissingTable(text string) string {
	if m := missingTable.FindStringSubmatch(text); m != nil {
		return m[1] + ".sst"
	}
	return ""
}

// Lock keeps every other opener of a directory out until the lock is closed. held means that
// another process, or another part of this one, has it.
func Lock(fsys vfs.FS, dir string) (lock *pebble.Lock, held bool, err error) {
	if lock, err = pebble.LockDirectory(dir, fsys); err == nil {
		return lock, false, nil
	}
	var path *fs.PathError
	held = strings.Contains(err.Error(), "lock held") || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES)
	return nil, held && !errors.As(err, &path), err
}

// Foreign returns a file of a directory that is neither its lock nor what a crash left of the
// Replace of a stamp, "" if it has none.
func Foreign(fsys vfs.FS, dir, stamp string) (string, error) {
	names, err := fsys.List(dir)
	for _, name := range names {
		if name != "LOCK" && name != stamp+".new" {
			return name, err
		}
	}
	return "", err
}

// fatal keeps the error in the arguments, so that a full disk is still known as one.
func fatal(format string, args []any) error {
	for _, a := range args {
		if err, ok := a.(error); ok {
			return fmt.Errorf(format+"%.0w", append(args, err)...)
		}
	}
	return fmt.Errorf(format, args...)
}

// Logger gives pebble's lines to Log. Pebble does not expect Fatalf to return: Fail has to keep
// anything from being acknowledged from then on.
type Logger struct {
	Log  *slog.Logger
	Fail func(error)
}

// Infof implements pebble.Logger.
func (l Logger) Infof(format string, args ...any) {
	if l.Log.Enabled(context.Background(), slog.LevelDebug) {
		l.Log.Debug(fmt.Sprintf(format, args...))
	}
}

// Errorf implements pebble.Logger.
func (l Logger) Errorf(format string, args ...any) { l.Log.Error(fmt.Sprintf(format, args...)) }

// Fatalf implements pebble.Logger.
func (l Logger) Fatalf(format string, args ...any) { l.Fail(fatal(format, args)) }
