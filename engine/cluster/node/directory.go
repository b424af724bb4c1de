package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// identityFile is the file of a directory that names its owner, and that is locked while a process
// uses it.
const identityFile = "trunkline-cluster.json"

// identityFormat is the version of that file.
const identityFormat = 1

// maxIdentity bounds what is read of it, in bytes.
const maxIdentity = 64 << 10

// identity is what a directory is for.
type identity struct {
	Format     int    `json:"format"`
	Cluster    string `json:"cluster"`
	Node       string `json:"node"`
	Partitions int    `json:"partitions"`
}

// takeDirectory makes dir or checks that it is one of want, and locks it until the file is closed.
func takeDirectory(dir string, want identity) (_ *os.File, err error) {
	if err = os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, identityFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.New("another process uses it")
		}
		return nil, fmt.Errorf("cannot lock %s: %w", f.Name(), err)
	}
	has, err := readIdentity(f)
	if err == nil {
		return f, has.check(want)
	}
	if _, used := os.Stat(filepath.Join(dir, storeDir)); !errors.Is(used, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot read %s of a directory with files of a server: %w", identityFile, err)
	}
	return f, makeIdentity(f, dir, want)
}

// makeIdentity writes want to a directory in which no server has been started yet.
func makeIdentity(f *os.File, dir string, want identity) error {
	text, err := json.Marshal(want)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(append(text, '\n'), 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = syncDirectory(dir)
	}
	return err
}

func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func readIdentity(f *os.File) (has identity, err error) {
	text, err := io.ReadAll(io.LimitReader(f, maxIdentity))
	if err == nil {
		err = json.Unmarshal(text, &has)
	}
	return has, err
}

// check compares what a directory is for with what it is to be used for.
func (has identity) check(want identity) error {
	switch {
	case has.Format != want.Format:
		return fmt.Errorf("its %s has format %d, this program reads %d", identityFile, has.Format, want.Format)
	case has.Cluster != want.Cluster:
		return fmt.Errorf("it belongs to cluster %q, not to %q", has.Cluster, want.Cluster)
	case has.Node != want.Node:
		return fmt.Errorf("it belongs to node %q, not to %q", has.Node, want.Node)
	case has.Partitions != want.Partitions:
		return fmt.Errorf("it was made with %d partitions, not %d; their number cannot change", has.Partitions, want.Partitions)
	}
	return nil
}
