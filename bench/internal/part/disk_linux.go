package part

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	out, err := exec.Command("findmnt", "-no", "FSTYPE,SOURCE", "-T", path).Output()
	if f := strings.Fields(string(out)); err == nil && len(f) == 2 {
		return f[0] + " on " + f[1]
	}
	return "unknown"
}
