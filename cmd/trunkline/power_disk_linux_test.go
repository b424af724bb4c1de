package main

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// crashDisk is the disk of a process, mounted at a directory.
type crashDisk struct {
	t       *testing.T
	dir     string
	disk    *lossyDisk
	unmount func() error
}

// newCrashDisk mounts one until the end of the test. Its processes have ended then.
func newCrashDisk(t *testing.T) *crashDisk {
	t.Helper()
	d := &crashDisk{t: t, dir: t.TempDir(), disk: newLossyDisk()}
	var err error
	if d.unmount, err = d.disk.mount(d.dir); errors.Is(err, errNoFUSE) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.unmount(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// lose has the disk lose its power, and mounts it again. No process uses it.
func (d *crashDisk) lose(chance *rand.Rand) {
	d.t.Helper()
	if err := d.unmount(); err != nil {
		d.t.Fatal(err)
	}
	d.disk.lose(chance)
	var err error
	if d.unmount, err = d.disk.mount(d.dir); err != nil {
		d.t.Fatal(err)
	}
}
