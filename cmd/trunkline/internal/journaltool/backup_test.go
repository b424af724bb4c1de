package journaltool

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
)

func TestBackupIsAJournal(t *testing.T) {
	for _, mode := range []journal.Mode{journal.Always, journal.Interval} {
		dir := made(t, plan{mode: mode, groups: 6, snapshots: []int{1, 3}})
		dest := filepath.Join(t.TempDir(), "backup")
		n, err := Backup(t.Context(), dir, dest, nothing{})
		must(t, err)
		if r := verified(t, dest); !r.Sound || r.LastIndex != 67 || len(r.Snapshots) != 2 || n == 0 {
			t.Errorf("%d bytes, %+v", n, r)
		}
		if last, err := start(dest, mode, 0); err != nil || last != 67 {
			t.Errorf("%d, %v", last, err)
		}
		if r := verified(t, dir); r.LastEpoch != 1 {
			t.Error("the backup is not its own")
		}
	}
}

func TestADamagedJournalIsBackedUpAsItIs(t *testing.T) {
	dir := made(t, plan{groups: 6})
	must(t, os.Remove(file(t, dir, "*.log")))
	dest := filepath.Join(t.TempDir(), "backup")
	_, err := Backup(t.Context(), dir, dest, nothing{})
	must(t, err)
	if r := verified(t, dest); r.Sound {
		t.Error("sound")
	}
}

func TestBackupPlaces(t *testing.T) {
	dir := made(t, plan{groups: 1})
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	f := func(from, dest string, want error) {
		t.Helper()
		if _, err := Backup(t.Context(), from, dest, nothing{}); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v, want %v", dest, err, want)
		}
	}
	f(dir, filepath.Join(dir, "x"), ErrInside)
	f(dir, filepath.Join(dir, "x", "y"), ErrInside)
	f(dir, filepath.Join(link, "x"), ErrInside)
	f(link, filepath.Join(dir, "x"), ErrInside)
	f(dir, dir, ErrInside)
	f(dir, filepath.Dir(dir), embedded.ErrThere)
	f(dir, dir+"-backup", nil)
	f(t.TempDir(), dir+"-other", embedded.ErrNoJournal)
}
