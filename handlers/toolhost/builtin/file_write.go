package builtin

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

// maxWrite is the longest content of FILE.WRITE and of one line of a memory, in bytes (§4.7).
const maxWrite = 1 << 20

var errContentTooLarge = errors.New("content too large (>1MB)")

func fileWrite(_ context.Context, e *Env, c *tool.Call) ([]byte, error) {
	in := pick(c.Input, "path", "content", "overwrite", "mkdirs")
	path, _ := in.text("path")
	if path == "" {
		return nil, errMissingPath
	}
	content, ok := in.text("content")
	if !ok {
		return nil, errors.New("missing content")
	}
	r := newRoot(e.Root).within(e.WriteRoot)
	if _, err := r.parts(path); err == errOutside {
		return nil, writeError(path, err)
	}
	if len(content) > maxWrite {
		return nil, errContentTooLarge
	}
	d, last, err := r.parent(path, in.boolean("mkdirs", true))
	if err != nil {
		return nil, writeError(path, err)
	}
	defer d.close()
	e.swept.sweep(d, c.Now())
	written, err := r.write(d, last, content, in.boolean("overwrite", false))
	if err != nil {
		return nil, writeError(path, err)
	}
	size := int64(len(content))
	out := jsonx.Build(nil).Bool("ok", true).Text("path", path).Text("written", written).Int("bytes", size).End()
	c.State.Set(0, sessionstate.Artifact{Type: "file_write", Provenance: "fs:write", Content: string(out), Size: size})
	return out, nil
}

// writeError returns the error of FILE.WRITE for path, which cannot be written because of err.
func writeError(path string, err error) error {
	switch err {
	case errOutside:
		return errors.New("write path not allowed (outside write root): " + path)
	case unix.EEXIST:
		return errors.New("file exists (overwrite=false): " + path)
	}
	return errors.New("cannot write file: " + path)
}

// backupSuffix is appended to a file's name for its old content (toolhost §4.7).
const backupSuffix = ".bak"

// maxBackupStem is how much of a name otherBackup keeps, for file systems with 143 bytes for names.
const maxBackupStem = 120

// otherBackup is the backup's name where name+backupSuffix is too long, or a directory: whole
// characters of the name's first maxBackupStem bytes, and 16 hex digits of its SHA-256.
func otherBackup(name string) string {
	sum := sha256.Sum256([]byte(name))
	return jsonx.Clip(name, maxBackupStem) + "-" + hex.EncodeToString(sum[:8]) + backupSuffix
}

// write makes content the file last in d, at once and durably, and returns its name without links.
// What has the name is unix.EEXIST, or with overwrite becomes the backup.
func (r *root) write(d *dir, last, content string, overwrite bool) (written string, err error) {
	perm, err := d.replaceable(last, overwrite)
	if err == errLink {
		err = r.linkError(d, last)
	}
	if err != nil {
		return "", err
	}
	temp, err := d.writeTemp(content, perm)
	if err != nil {
		return "", err
	}
	if overwrite {
		err = d.replace(temp, last)
	} else {
		err = d.link(temp, last)
	}
	if err != nil || !overwrite {
		err = cmp.Or(err, d.remove(temp))
	}
	if err == nil {
		err = d.sync()
	}
	return filepath.Join(d.path, last), err
}

// replaceable reports whether a file may be put at name, with the permissions of the present one.
func (d *dir) replaceable(name string, overwrite bool) (perm os.FileMode, err error) {
	st, err := d.lstat(name)
	if err == unix.ENOENT {
		return filePerm, nil
	}
	if err == nil {
		err = regular(&st)
	}
	if !overwrite && (err == nil || err == errNotRegular) {
		err = unix.EEXIST
	}
	return os.FileMode(uint32(st.Mode) & 0o777), err
}

func (d *dir) writeTemp(content string, perm os.FileMode) (name string, err error) {
	name = tempName()
	f, err := d.open(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return "", err
	}
	_, err = io.WriteString(f, content)
	if err == nil && perm != filePerm {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err != nil {
		_ = d.remove(name)
	}
	return name, err
}

// replace gives temp the name name, whose file keeps that until then, and before it the backup's.
func (d *dir) replace(temp, name string) error {
	second := tempName()
	err := d.link(name, second)
	if err == nil {
		if err = d.rename(second, name+backupSuffix); err == unix.ENAMETOOLONG || err == unix.EISDIR {
			err = d.rename(second, otherBackup(name))
		}
		if err != nil {
			_ = d.remove(second)
			return err
		}
		// Renaming onto another name of the same file does nothing: the second name is still there.
		if _, gone := d.lstat(second); gone == nil {
			_ = d.remove(second)
		}
	}
	if err != nil && err != unix.ENOENT {
		return err
	}
	return d.rename(temp, name)
}

const (
	// tempPrefix begins the names of temporary files. tempBytes random bytes follow, in hex.
	tempPrefix = ".tmp-"
	tempBytes  = 8
	// staleTemp is the age at which a temporary file counts as left by a killed writer: calls are
	// over after ten minutes (toolhost §6). It is also how often a directory is swept.
	staleTemp = time.Hour
	// maxSweep is how many names one look goes over: some tens of milliseconds at most.
	maxSweep = 1 << 16
	// maxSwept is how many directories are remembered. Of more, some are swept too often.
	maxSwept = 256
)

func tempName() string {
	var id [tempBytes]byte
	_, _ = rand.Read(id[:]) // never fails
	return tempPrefix + hex.EncodeToString(id[:])
}

func isTemp(name string) bool {
	digits, ok := strings.CutPrefix(name, tempPrefix)
	return ok && len(digits) == 2*tempBytes && strings.Trim(digits, "0123456789abcdef") == ""
}

// sweeps removes the temporary files of killed writers, directory by directory.
type sweeps struct {
	mu   sync.Mutex
	done map[string]time.Time // by path, when it was looked through
}

// sweep looks d through unless that was done lately. What cannot be removed stays.
func (s *sweeps) sweep(d *dir, now time.Time) {
	if s.due(d.path, now) {
		removeStale(d, now, maxSweep)
	}
}

func removeStale(d *dir, now time.Time, names int) {
	_ = d.names(func(name string) bool {
		if isTemp(name) && d.isStale(name, now) {
			_ = d.remove(name)
		}
		names--
		return names > 0
	})
}

// due reports whether the directory path is to be looked through now, and takes note of it.
func (s *sweeps) due(path string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.done[path]; ok && now.Sub(last).Abs() < staleTemp {
		return false
	}
	if s.done == nil || len(s.done) >= maxSwept {
		s.done = make(map[string]time.Time)
	}
	s.done[path] = now
	return true
}

// isStale reports whether a file has had its name for longer than a writer needs. Its content's
// time is irrelevant: the second name of a file that becomes the backup is new.
func (d *dir) isStale(name string, now time.Time) bool {
	st, err := d.lstat(name)
	return err == nil && typeOf(&st) == unix.S_IFREG && now.Sub(time.Unix(st.Ctim.Unix())) >= staleTemp
}
