package embedded

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
)

// archived returns the archive of a directory.
func archived(t testing.TB, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Archive(context.Background(), Config{Dir: dir}, &b, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func extract(dir string, b []byte) error {
	return Extract(context.Background(), Config{Dir: dir}, bytes.NewReader(b), int64(len(b)), nil)
}

// TestArchiveIsTheOriginal: what is extracted is the original, file by file, in a new directory and
// in one that is there and empty.
func TestArchiveIsTheOriginal(t *testing.T) {
	for _, mode := range bothModes {
		dir := crashed(t, mode)
		before := fingerprint(t, dir)
		b := archived(t, dir)
		wantSame(t, before, fingerprint(t, dir))
		for _, dest := range []string{filepath.Join(t.TempDir(), "a", "b"), t.TempDir()} {
			if err := extract(dest, b); err != nil {
				t.Fatal(err)
			}
			wantSame(t, before, fingerprint(t, dest))
			s := mustOpen(t, Config{Dir: dest, Mode: mode})
			wantPrefix(t, s, damageBlocks)
			mustClose(t, s)
			if err := extract(dest, b); !errors.Is(err, ErrNotEmpty) {
				t.Errorf("over a store: %v", err)
			}
		}
	}
}

// TestRestoreToAnEmptyDirectory: the directory stays, and is empty again where it fails.
func TestRestoreToAnEmptyDirectory(t *testing.T) {
	dir, dest := crashed(t, journal.Always), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	err := Restore(ctx, Config{Dir: dir}, dest, func(done, total int64) {
		if done > total/2 {
			cancel()
		}
	})
	if names, _ := os.ReadDir(dest); !errors.Is(err, context.Canceled) || len(names) != 0 {
		t.Errorf("%v, left %v", err, names)
	}
	if err := Restore(t.Context(), Config{Dir: dir}, dest, nil); err != nil {
		t.Fatal(err)
	}
	wantSame(t, fingerprint(t, dir), fingerprint(t, dest))
	if err := Restore(t.Context(), Config{Dir: dir}, dest, nil); !errors.Is(err, ErrNotEmpty) || errors.Is(err, journal.ErrLocked) {
		t.Errorf("over a store: %v", err)
	}
	s := mustOpen(t, Config{Dir: dest})
	if err := Restore(t.Context(), Config{Dir: dir}, dest, nil); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("over the store of a server: %v", err)
	}
	mustClose(t, s)
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "letter"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), Config{Dir: dir}, other, nil); !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), "letter") {
		t.Errorf("over something else: %v", err)
	}
}

// tarOf makes a stream of files: name, text, name, text.
func tarOf(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		err := w.WriteHeader(header(files[i], int64(len(files[i+1]))))
		if err == nil {
			_, err = io.WriteString(w, files[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestExtractRefuses: nothing is left of a stream that is not a whole archive.
func TestExtractRefuses(t *testing.T) {
	stamp := stampText(journal.Always, formatAlways)
	parent := t.TempDir()
	f := func(why string, b []byte, want error) {
		t.Helper()
		dest := filepath.Join(parent, "x")
		if err := extract(dest, b); !errors.Is(err, want) && want != nil || err == nil {
			t.Errorf("%s: %v", why, err)
		}
		if names, _ := os.ReadDir(parent); len(names) != 0 {
			t.Fatalf("%s: left %v", why, names)
		}
	}
	long := strings.Repeat("n", maxArchiveName)
	f("nothing", nil, errArchive)
	f("no tar", bytes.Repeat([]byte("no tar "), 200), errArchive)
	f("no stamp", tarOf(t, "MARK", "m"), errArchive)
	f("a way out", tarOf(t, "../x", "m", stampName, stamp), errArchive)
	f("a way out by rows", tarOf(t, "rows/../x", "m", stampName, stamp), errArchive)
	f("an absolute name", tarOf(t, "/x", "m", stampName, stamp), errArchive)
	f("another directory", tarOf(t, "other/x", "m", stampName, stamp), errArchive)
	f("a lock", tarOf(t, "LOCK", "", stampName, stamp), errArchive)
	f("the directory of rows as a file", tarOf(t, "rows", "", stampName, stamp), errArchive)
	f("a name twice", tarOf(t, "MARK", "m", "MARK", "m", stampName, stamp), errArchive)
	f("a name that is too long", tarOf(t, long+"n", "m", stampName, stamp), errArchive)
	f("a stamp that is not the last", tarOf(t, "MARK", "m", stampName, stamp, "SYNCED", "m"), errArchive)
	f("something behind the stamp", append(bytes.TrimRight(tarOf(t, "MARK", "m", stampName, stamp), "\x00"), bytes.Repeat([]byte("x"), 2000)...), errArchive)
	f("another stamp", tarOf(t, stampName, "dear"), nil)
	f("the stamp of another version", tarOf(t, stampName, "trunkline journal 2\n"), nil)
	var extended bytes.Buffer
	w := tar.NewWriter(&extended)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "MARK", Format: tar.FormatPAX, PAXRecords: map[string]string{"VENDOR.x": "y"}})
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	f("an extension", extended.Bytes(), errArchive)
	whole := tarOf(t, "MARK", strings.Repeat("m", 2000), stampName, stamp)
	for n := 0; n < 512+2048+512+len(stamp); n += 100 {
		f(fmt.Sprint("cut at ", n), whole[:n], errArchive)
	}
	if err := extract(filepath.Join(parent, "x"), tarOf(t, long, "m", stampName, stamp)); err != nil {
		t.Errorf("the longest name: %v", err)
	}
}

// FuzzExtract: a stream makes a store, or leaves nothing; no file is made elsewhere.
func FuzzExtract(f *testing.F) {
	stamp := stampText(journal.Interval, formatInterval)
	f.Add(tarOf(f, "MARK", "m", "rows/ROWS", "r", stampName, stamp))
	f.Add(tarOf(f, "../x", "m", stampName, stamp))
	f.Add([]byte("no tar"))
	f.Fuzz(func(t *testing.T, b []byte) {
		mem := vfs.NewMem()
		err := Extract(t.Context(), Config{Dir: "a/x", FS: mem}, bytes.NewReader(b), 0, nil)
		_, missing := mem.Stat("a/x/" + stampName)
		if (err == nil) != (missing == nil) {
			t.Errorf("%v, the stamp: %v", err, missing)
		}
		if names, _ := mem.List("a"); len(names) > 1 || err != nil && len(names) > 0 {
			t.Errorf("%v: %q", err, names)
		}
	})
}
