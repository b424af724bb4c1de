package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// roomyTemp is the folder for temporary files that the file system hierarchy wants kept on a disk.
const roomyTemp = "/var/tmp"

// storeRig makes a rig whose folder is on a disk: in dir, or where a disk is found.
func storeRig(dir string) (*load.Rig, error) {
	candidates := []string{dir}
	if dir == "" {
		candidates = []string{roomyTemp, "."}
	}
	var refused error
	for _, c := range candidates {
		path, err := filepath.Abs(c)
		if err == nil {
			err = onDisk(path)
		}
		var rig *load.Rig
		if err == nil {
			rig, err = load.NewRig(path, "store-bench-")
		}
		if err == nil {
			return rig, nil
		}
		refused = errors.Join(refused, err)
	}
	return nil, fmt.Errorf("cannot find a folder on a disk, give one with -dir: %w", refused)
}

// onDisk refuses a folder whose files are kept in memory: a sync there costs nothing and saves
// nothing.
func onDisk(path string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return fmt.Errorf("cannot use %s: %w", path, err)
	}
	if s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC {
		return fmt.Errorf("cannot use %s: its files are kept in memory (tmpfs), not on a disk", path)
	}
	return nil
}

// filesystem names the file system and the device that hold path, as "ext4 on /dev/sda1".
func filesystem(path string) string {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "unknown"
	}
	return mountOf(b, path)
}

// mountOf finds the mount with the longest path above path; of two on one place the later one
// counts.
func mountOf(mountinfo []byte, path string) string {
	found, longest := "unknown", -1
	in := bufio.NewScanner(bytes.NewReader(mountinfo))
	for in.Scan() {
		left, right, ok := strings.Cut(in.Text(), " - ")
		place, source := strings.Fields(left), strings.Fields(right)
		if !ok || len(place) < 5 || len(source) < 2 {
			continue
		}
		at := place[4]
		under := path == at || strings.HasPrefix(path, strings.TrimSuffix(at, "/")+"/")
		if under && len(at) >= longest {
			found, longest = source[0]+" on "+source[1], len(at)
		}
	}
	return found
}

// diskSizes are the bytes of the bare writes, and diskSamples how many of each there are in a
// round.
var diskSizes = []int{4 << 10, 64 << 10}

const diskSamples = 60

// diskTimes collects how long a bare write and fdatasync took, by size.
type diskTimes map[int]*load.Histogram

// measure appends to a file of its own in dir.
func (d diskTimes) measure(dir string) error {
	path := filepath.Join(dir, "bare")
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("cannot open %s: %w", path, err)
	}
	defer os.Remove(path)
	defer unix.Close(fd)
	for _, size := range diskSizes {
		if d[size] == nil {
			d[size] = new(load.Histogram)
		}
		block := bytes.Repeat([]byte{0xa5}, size)
		for range diskSamples {
			start := time.Now()
			n, err := unix.Write(fd, block)
			if err == nil && n == size {
				err = unix.Fdatasync(fd)
			}
			if err != nil || n != size {
				return fmt.Errorf("cannot write and sync %d bytes, wrote %d: %w", size, n, err)
			}
			d[size].Add(int64(time.Since(start)), 1)
		}
	}
	return nil
}

// diskRow is what a bare write of a size and its sync took.
type diskRow struct {
	Bytes   int     `json:"bytes"`
	Samples uint64  `json:"samples"`
	P50     float64 `json:"p50_us"`
	P99     float64 `json:"p99_us"`
}

func (d diskTimes) rows() (rows []diskRow) {
	for _, size := range diskSizes {
		if h := d[size]; h != nil {
			rows = append(rows, diskRow{size, h.Total(), goal.Micros(h.Quantile(0.5)), goal.Micros(h.Quantile(0.99))})
		}
	}
	return rows
}
