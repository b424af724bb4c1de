package tools

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// backupSuffix is what the old content of a file that is overwritten is called by, behind the file's name (toolhost §4.7).
const backupSuffix = ".bak"

// maxBackupStem is how many bytes of a file's name otherBackup keeps: with the rest of it they fit
// the file systems with the shortest names, 143 bytes.
const maxBackupStem = 120

// otherBackup is what the backup of name is called where name+backupSuffix is too long, or a directory: the begin of the name, at most
// maxBackupStem bytes and no part of a character, and 16 hex digits of the SHA-256 of the name, so that each file has a backup of its own.
func otherBackup(name string) string {
	sum := sha256.Sum256([]byte(name))
	stem := name
	if cut := maxBackupStem; len(name) > cut {
		for cut > maxBackupStem-utf8.UTFMax && !utf8.RuneStart(name[cut]) {
			cut--
		}
		stem = name[:cut]
	}
	return stem + "-" + hex.EncodeToString(sum[:8]) + backupSuffix
}

// write makes content the content of the file last in d, at once and durably: a reader finds all of
// the old or all of the new. It returns the name without links. If something has the name it fails
// with unix.EEXIST, or with overwrite keeps the old content as a backup, in place of an older one.
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

// replaceable reports whether a file may be put at name, and the permissions it gets: those of the file that has the name.
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

// writeTemp writes content to a new file in d, durably, and returns its name, which nothing else has.
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

// replace gives the file temp the name name. What has the name stays reachable by it until that
// moment, and by the name of the backup from before it on.
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
		// Renaming onto another name of the same file does nothing at all: then the second name is still there.
		if _, gone := d.lstat(second); gone == nil {
			_ = d.remove(second)
		}
	}
	if err != nil && err != unix.ENOENT {
		return err
	}
	return d.rename(temp, name)
}
