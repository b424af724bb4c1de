package rows

import (
	"path/filepath"
	"strings"
	"testing"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
)

// TestRowsInAJournal: rows live in the directory of a journal, a start of either does not touch the
// other, and a copy of the journal has the rows that fit it.
func TestRowsInAJournal(t *testing.T) {
	dir, dest := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	cfg := embedded.Config{Dir: dir}
	for i := range uint64(3) {
		s, err := embedded.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.WriteBlock(i+1, []byte("block")); err != nil {
			t.Fatal(err)
		}
		d := mustOpen(t, Config{Dir: filepath.Join(dir, "rows")})
		if err := d.Check(d.Identity(), i, i); err != nil {
			t.Fatal(err)
		}
		mustPut(t, d, int(i)*10, int(i)*10+10, 50)
		mustFlush(t, d, i+1)
		mustClose(t, d)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := embedded.Copy(t.Context(), cfg, dest, nil); err != nil {
		t.Fatal(err)
	}
	v, err := embedded.Inspect(embedded.Config{Dir: dest})
	if err != nil {
		t.Fatal(err)
	}
	files, err := v.Files()
	rows := 0
	for _, f := range files {
		if strings.HasPrefix(f.Name, "rows/") != (f.Kind == "rows") {
			t.Errorf("%+v", f)
		}
		if f.Kind == "rows" {
			rows++
		}
	}
	if err != nil || rows == 0 || v.Damage() != nil {
		t.Error(rows, err, v.Damage())
	}
	var last journal.Index
	err = v.Blocks(0, func(first journal.Index, _ []byte) error { last = first; return nil })
	if err != nil || last != 3 {
		t.Error(last, err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	d := mustOpen(t, Config{Dir: filepath.Join(dir, "rows")})
	id := d.Identity()
	mustClose(t, d)
	d = mustOpen(t, Config{Dir: filepath.Join(dest, "rows")})
	defer mustClose(t, d)
	if err := d.Check(id, 3, 3); err != nil {
		t.Error(err)
	}
	wantRows(t, d, 30, 50)
}
