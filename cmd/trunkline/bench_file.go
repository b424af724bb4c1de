package main

import (
	"errors"
	"io/fs"
	"os"
)

// resultFile is opened before a run and keeps what is in it until the first byte of the result
// comes: a run that fails does not cost the result of the one before.
type resultFile struct {
	f     *os.File
	ours  bool // there was none before
	begun bool
}

// openResult opens or creates a file to write to.
func openResult(name string) (*resultFile, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil {
		return &resultFile{f: f, ours: true}, nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if f, err = os.OpenFile(name, os.O_WRONLY, 0); err != nil {
		return nil, err
	}
	return &resultFile{f: f}, nil
}

// Write writes, and makes the file empty before the first byte.
func (r *resultFile) Write(b []byte) (int, error) {
	if !r.begun {
		r.begun = true
		if err := r.empty(); err != nil {
			return 0, err
		}
	}
	return r.f.Write(b)
}

// empty drops what was there. Devices and pipes have nothing to drop.
func (r *resultFile) empty() error {
	info, err := r.f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	return r.f.Truncate(0)
}

// Close closes the file.
func (r *resultFile) Close() error { return r.f.Close() }

// giveUp leaves everything as it was.
func (r *resultFile) giveUp() {
	r.f.Close()
	if r.ours {
		os.Remove(r.f.Name())
	}
}
