package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
)

func TestBlocksAreThereAfterARestart(t *testing.T) {
	for _, mode := range bothModes {
		cfg := Config{Dir: filepath.Join(t.TempDir(), "new", "dir"), Mode: mode, Partition: 7}
		s := mustOpen(t, cfg)
		mustWrite(t, s, 1, 50, 3000)
		mustClose(t, s)
		s = mustOpen(t, cfg)
		wantPrefix(t, s, 50)
		mustWrite(t, s, 51, 60, 3000)
		mustClose(t, s)
		s = mustOpen(t, cfg)
		wantPrefix(t, s, 60)
		mustClose(t, s)
	}
}

func TestOneOpener(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, Config{Dir: dir})
	f := func(spelling string) {
		t.Helper()
		if _, err := Open(Config{Dir: spelling}); !errors.Is(err, journal.ErrLocked) {
			t.Fatalf("got %v, want ErrLocked", err)
		}
	}
	f(dir)
	f(dir + "/../" + filepath.Base(dir))
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	f(link)
	mustWrite(t, s, 1, 1, 10)
	mustClose(t, s)
	mustClose(t, mustOpen(t, Config{Dir: link}))
}

func TestOneOpenerInMemory(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, Config{Dir: "d", FS: fs})
	if _, err := Open(Config{Dir: "./d", FS: fs}); !errors.Is(err, journal.ErrLocked) {
		t.Fatalf("got %v, want ErrLocked", err)
	}
	mustClose(t, s)
}

func TestOneMode(t *testing.T) {
	for _, made := range bothModes {
		asked := journal.Interval - made
		dir := t.TempDir()
		s := mustOpen(t, Config{Dir: dir, Mode: made})
		mustWrite(t, s, 1, 3, 10)
		mustClose(t, s)
		_, err := Open(Config{Dir: dir, Mode: asked})
		var wrong *journal.ErrModeMismatch
		if !errors.As(err, &wrong) || wrong.Made != made || wrong.Asked != asked {
			t.Fatalf("got %v", err)
		}
		s = mustOpen(t, Config{Dir: dir, Mode: made})
		wantPrefix(t, s, 3)
		mustClose(t, s)
	}
	if _, err := Open(Config{Dir: t.TempDir(), Mode: journal.Memory}); err == nil {
		t.Fatal("memory mode opened")
	}
}

func TestFormats(t *testing.T) {
	if formatAlways != pebble.FormatNewest {
		t.Errorf("pebble's newest format is %d, always uses %d: decide whether to raise the stamp", pebble.FormatNewest, formatAlways)
	}
	if formatInterval >= pebble.FormatWALSyncChunks {
		t.Errorf("interval uses format %d, which records syncs that have not happened", formatInterval)
	}
}

func TestStrangeDirectory(t *testing.T) {
	f := func(name, text string) error {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(quiet(Config{Dir: dir}))
		if err == nil {
			mustClose(t, s)
		}
		return err
	}
	wantDamage := func(err error) {
		t.Helper()
		var damage *journal.DamageError
		if !errors.As(err, &damage) || filepath.Base(damage.Where) != stampName {
			t.Errorf("got %v, want damage in %s", err, stampName)
		}
	}
	wantDamage(f("000001.sst", "not ours"))
	wantDamage(f(stampName, "mode whatever"))
	wantDamage(f(stampName, ""))
	wantLayout := func(text, what string, found uint64, newer bool) {
		t.Helper()
		var layout *journal.LayoutError
		err := f(stampName, text)
		if !errors.As(err, &layout) || layout.What != what || layout.Found != found || layout.Newer() != newer || layout.Advice() == "" {
			t.Errorf("%q: %v, want %s %d", text, err, what, found)
		}
	}
	wantLayout("trunkline journal 2\nmode always\n", "layout", 2, true)
	wantLayout("trunkline journal 12\nanything", "layout", 12, true)
	wantLayout("trunkline journal 0\nmode always\nformat 2\n", "layout", 0, false)
	wantLayout("trunkline journal 1\nmode always\nformat 99\n", "format", 99, true)
	wantLayout("trunkline journal 1\nmode interval\nformat 1\n", "format", 1, false)
	wantDamage(f(stampName, "trunkline journal \nmode always\n"))
	wantDamage(f(stampName, "trunkline journal 1\nmode never\n"))
	wantDamage(f(stampName, "trunkline journal 1\nmode always\nformat 9")) // cut
	if err := f(stampName+".new", "half a st"); err != nil {
		t.Error("an interrupted beginning is not begun again:", err)
	}
}

func TestDropAndCut(t *testing.T) {
	for _, mode := range bothModes {
		cfg := Config{Dir: t.TempDir(), Mode: mode}
		s := mustOpen(t, cfg)
		for i := uint64(1); i <= 91; i += 10 {
			if err := s.WriteBlock(i, blockOf(i, 100)); err != nil {
				t.Fatal(err)
			}
		}
		want := func(from uint64, firsts ...uint64) {
			t.Helper()
			var got []uint64
			if err := s.Blocks(from, func(first uint64, _ []byte) error { got = append(got, first); return nil }); err != nil {
				t.Fatal(err)
			}
			if len(got) != len(firsts) {
				t.Fatalf("from %d: got %v, want %v", from, got, firsts)
			}
			for i := range got {
				if got[i] != firsts[i] {
					t.Fatalf("from %d: got %v, want %v", from, got, firsts)
				}
			}
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		want(0, 1, 11, 21, 31, 41, 51, 61, 71, 81, 91)
		want(75, 71, 81, 91)
		want(^uint64(0), 91)
		must(s.DropBlocks(0))
		must(s.DropBlocks(10))
		want(85, 81, 91)
		must(s.DropBlocks(31))
		want(0, 31, 41, 51, 61, 71, 81, 91)
		must(s.DropBlocks(1000))
		want(0, 91)
		must(s.WriteBlock(101, blockOf(101, 10)))
		must(s.CutBlocks(101))
		want(0, 91)
		must(s.WriteBlock(95, blockOf(95, 10)))
		if err := s.WriteBlock(95, nil); err == nil {
			t.Fatal("a block was written twice")
		}
		must(s.CutBlocks(0))
		want(0)
		mustClose(t, s)
		s = mustOpen(t, cfg)
		want(0)
		mustClose(t, s)
		if err := s.WriteBlock(200, nil); !errors.Is(err, journal.ErrClosed) {
			t.Fatalf("after Close: %v", err)
		}
	}
}
