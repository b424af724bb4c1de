package workers

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

var (
	// errHash is what a file is refused for that is not the one the manifest means (toolhost §4.10).
	errHash      = errors.New("hash mismatch")
	errNotInPath = errors.New("executable not found in PATH")
)

// executable returns the file that a command's first word means: a path as it is, a bare name looked up in the PATH of env.
func executable(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, runnable(name)
	}
	for _, dir := range filepath.SplitList(variable(env, "PATH")) {
		// An empty or relative entry would mean another program in every working directory.
		if !filepath.IsAbs(dir) {
			continue
		}
		if file := filepath.Join(dir, name); runnable(file) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("%w: %s", errNotInPath, name)
}

func runnable(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return &fs.PathError{Op: "exec", Path: file, Err: fs.ErrPermission}
	}
	return nil
}

// checkHash compares the SHA-256 of a file with want, lower-case hex; "" fits any file.
func checkHash(file, want string) error {
	if want == "" {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != want {
		return errHash
	}
	return nil
}
