package part

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// roomyTemp is the folder for temporary files that the file system hierarchy wants kept on a disk.
const roomyTemp = "/var/tmp"

// onDisk returns dir, or a folder that is found where it is empty. A folder whose files are kept in
// memory is refused: a sync there costs nothing and saves nothing.
func onDisk(dir string) (string, error) {
	candidates := []string{dir}
	if dir == "" {
		candidates = []string{roomyTemp, "."}
	}
	var refused error
	for _, c := range candidates {
		path, err := filepath.Abs(c)
		if err == nil {
			_, err = os.Stat(path)
		}
		if held := filesystem(path); err == nil && (strings.HasPrefix(held, "tmpfs ") || strings.HasPrefix(held, "ramfs ")) {
			err = fmt.Errorf("the files of %s are kept in memory (%s)", path, held)
		}
		if err == nil {
			return path, nil
		}
		refused = errors.Join(refused, err)
	}
	return "", fmt.Errorf("cannot find a folder on a disk, give one with -dir: %w", refused)
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
