package journaltool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/codec/jsonx"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/kernel"
	"trunkline/engine/store/rows"
)

// exportOf returns the export of a directory.
func exportOf(t *testing.T, dir string) string {
	t.Helper()
	var out bytes.Buffer
	done, err := Export(t.Context(), dir, Range{}, &out, nothing{})
	if must(t, err); done.Damages > 0 {
		t.Fatal(done.Damage)
	}
	return out.String()
}

func importOf(t *testing.T, text, dir string, mode journal.Mode) (*Imported, error) {
	t.Helper()
	return Import(t.Context(), strings.NewReader(text), uint64(len(text)), dir, mode, nothing{})
}

// withRows adds rows of agent threads to a journal: a run of messages would need its engine, so
// they are keys of audit events that no check looks into.
func withRows(t *testing.T, dir string, identity [16]byte, through uint64) {
	t.Helper()
	db, err := rows.Open(rows.Config{Dir: filepath.Join(dir, embedded.RowsDir), Identity: identity})
	must(t, err)
	b := db.NewBatch()
	for i := range 300 {
		b.Set(fmt.Appendf(nil, "x%04d", i), bytes.Repeat([]byte{byte(i)}, 5000))
	}
	must(t, errors.Join(b.Commit(), db.Flush(through), db.Close()))
}

// TestExportIsImported: what was imported exports as the original does, and a server goes on from
// it, in whatever mode.
func TestExportIsImported(t *testing.T) {
	for _, p := range []plan{
		{groups: 6},
		{groups: 6, snapshots: []int{1}},
		{groups: 8, snapshots: []int{1, 3, 5}}, // the log is cut
		{groups: 8, snapshots: []int{1, 3, 5}, mode: journal.Interval},
	} {
		dir := made(t, p)
		want := exportOf(t, dir)
		if cut := len(p.snapshots) > 1; strings.Contains(want, snapshotKind) != cut || strings.HasPrefix(want, `{"index":1,`) == cut {
			t.Fatalf("%v: begins %.200s", p.snapshots, want)
		}
		for _, mode := range []journal.Mode{journal.Always, journal.Interval} {
			to := filepath.Join(t.TempDir(), "new")
			done, err := importOf(t, want, to, mode)
			must(t, err)
			if !done.Report.Sound || done.Report.Mode != mode.String() || done.Lines == 0 || (done.State > 0) != (len(p.snapshots) > 1) {
				t.Errorf("%+v, %+v", done, done.Report)
			}
			if got := exportOf(t, to); got != want {
				t.Errorf("%v, %s: another export", p.snapshots, mode)
			}
			last, err := start(dir, p.mode, 0)
			must(t, err)
			if got, err := start(to, mode, 0); err != nil || got != last {
				t.Errorf("%v, %s: a server has it up to %d (%v), the original up to %d", p.snapshots, mode, got, err, last)
			}
			dir = made(t, p) // without the claim of that start
			want = exportOf(t, dir)
		}
	}
}

// TestRowsAreImported: rows come with their identity and their mark.
func TestRowsAreImported(t *testing.T) {
	dir, id := made(t, plan{groups: 8, snapshots: []int{1, 3, 5}}), [16]byte{1, 2, 3}
	withRows(t, dir, id, 50)
	want := exportOf(t, dir)
	to := filepath.Join(t.TempDir(), "new")
	im := importer{ctx: t.Context(), m: nothing{}, place: to}
	im.lines = lines{in: bufio.NewReader(strings.NewReader(want)), most: maxLine}
	must(t, im.run(journal.Always)) // not verified: these rows are of no engine
	if got := exportOf(t, to); got != want {
		t.Error("another export")
	}
	db, err := rows.Open(rows.Config{Dir: filepath.Join(to, embedded.RowsDir)})
	must(t, err)
	if err := db.Check(id, 50, 50); err != nil {
		t.Error(err)
	}
	must(t, db.Close())
}

// TestImportRefuses: each line is checked, the error has its number, and nothing is left.
func TestImportRefuses(t *testing.T) {
	whole := exportOf(t, made(t, plan{groups: 3}))
	cut := exportOf(t, made(t, plan{groups: 8, snapshots: []int{1, 3, 5}}))
	parent := t.TempDir()
	f := func(why, text string, line uint64, want string) {
		t.Helper()
		done, err := importOf(t, text, filepath.Join(parent, "new"), journal.Always)
		var bad *ImportError
		if !errors.As(err, &bad) || bad.Line != line || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want line %d with %q (%+v)", why, err, line, want, done)
		}
		if names, _ := os.ReadDir(parent); len(names) != 0 {
			t.Fatalf("%s: left %v", why, names)
		}
	}
	edit := func(text string, line int, change func(string) string) string {
		l := strings.SplitAfter(text, "\n")
		l[line-1] = change(l[line-1])
		return strings.Join(l, "")
	}
	sub := func(old, by string) func(string) string {
		return func(s string) string {
			if !strings.Contains(s, old) {
				t.Fatalf("no %s in %s", old, s)
			}
			return strings.Replace(s, old, by, 1)
		}
	}
	gone := func(string) string { return "" }
	f("nothing", "", 1, "it holds nothing")
	f("no JSON", edit(whole, 3, sub("{", "[")), 3, "it is no JSON")
	f("no object", edit(whole, 3, func(string) string { return "7\n" }), 3, "no JSON object")
	f("no kind", edit(whole, 3, sub(`"kind"`, `"kynd"`)), 3, "no member kind")
	f("another kind", edit(whole, 3, sub("kernel.usage", "kernel.lease")), 3, `"kind" is not what its record has`)
	f("an edited field", edit(whole, 3, sub(`"pid":"p1"`, `"pid":"p2"`)), 3, `"pid" is not what its record has`)
	f("a field of others", edit(whole, 3, sub("{", `{"note":"x",`)), 3, `"note" is not one of its kind`)
	f("a field twice", edit(whole, 3, sub("{", `{"kind":"kernel.usage",`)), 3, "is there twice")
	f("no base64", edit(whole, 3, func(s string) string { at := strings.Index(s, `,"base64"`); return s[:at] + "}\n" }), 3, "it has no base64")
	f("bad base64", edit(whole, 3, sub(`"base64":"`, `"base64":"!`)), 3, "it is no base64")
	f("a record of no kind", edit(whole, 3, func(s string) string { at := strings.Index(s, `"base64":"`); return s[:at] + `"base64":"P3g="}` + "\n" }), 3, "no change that this version knows")
	f("a bad index", edit(whole, 3, sub(`"index":3`, `"index":-3`)), 3, "no member index")
	f("a bad time", edit(whole, 3, sub(`"time":"2`, `"time":"x`)), 3, "no member time")
	f("a hole", edit(whole, 3, gone), 3, "3 is next")
	f("no beginning", edit(whole, 1, gone), 1, "the log begins there")
	f("twice", whole+whole, uint64(strings.Count(whole, "\n"))+1, "a line behind the last one")
	last := strings.Count(whole, "\n")
	f("cut between two lines", edit(whole, last, gone), uint64(last), "the export has no last line")
	f("cut further up", strings.Join(strings.SplitAfter(whole, "\n")[:5], ""), 6, "the export has no last line")
	f("a record less", edit(whole, last-1, gone), uint64(last-1), "lines, and ")
	f("a bad end", edit(whole, last, sub(`"lines":`, `"lines":-`)), uint64(last), "no member lines")
	f("the end alone", `{"kind":"end","lines":0}`+"\n", 2, "it holds nothing")
	rows := `{"kind":"rows","identity":"00000000000000000000000000000001","through":0}` + "\n" + edit(whole, last, func(string) string { return fmt.Sprintf(`{"kind":"end","lines":%d}`+"\n", last+1) })
	f("a row less", rows, uint64(last)+1, fmt.Sprintf("has %d lines, and %d were there", last+1, last))
	f("a line that is cut", whole[:len(whole)-10], uint64(strings.Count(whole, "\n")), "the file is cut")
	f("a snapshot without its log", strings.Join(strings.SplitAfter(cut, "\n")[:3], ""), 4, "")
	f("a snapshot that is cut", edit(cut, 2, gone), 3, "the snapshot before it has")
	f("a snapshot that is changed", edit(cut, 1, sub(`"bytes":`, `"bytes":1`)), 4, "the snapshot before it has")
	f("a part alone", edit(cut, 1, gone), 1, "a part of a snapshot")
	f("state behind the log", edit(whole, last, gone)+cut, uint64(last), "comes before all lines with an index")
	f("a row alone", `{"kind":"row","key":"eA==","value":"eA=="}`+"\n", 1, "rows begin once")
	f("a row without a key", `{"kind":"rows","identity":"00000000000000000000000000000001","through":0}`+"\n"+`{"kind":"row","key":"","value":"eA=="}`+"\n", 2, "a key of 0 bytes")
	f("a bad identity", `{"kind":"rows","identity":"00","through":0}`+"\n", 1, "32 hexadecimal digits")
	if _, err := importOf(t, whole, filepath.Join(parent, "new"), journal.Always); err != nil {
		t.Errorf("the whole: %v", err)
	}
}

// TestImportTakesReformattedLines: space between members, an empty line and fields that a version
// did not write change nothing.
func TestImportTakesReformattedLines(t *testing.T) {
	whole := exportOf(t, made(t, plan{groups: 2}))
	text := strings.ReplaceAll(whole, `,"`, ` , "`)
	text = strings.Replace(text, `, "pid":"p1"`, "", 1)
	to := filepath.Join(t.TempDir(), "new")
	_, err := importOf(t, "\n \n"+text, to, journal.Always)
	must(t, err)
	if got := exportOf(t, to); got != whole {
		t.Error("another export")
	}
}

func TestImportPlaces(t *testing.T) {
	whole := exportOf(t, made(t, plan{groups: 2}))
	f := func(dir string, want error) {
		t.Helper()
		if _, err := importOf(t, whole, dir, journal.Always); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v, want %v", dir, err, want)
		}
	}
	empty := t.TempDir()
	f(empty, nil)
	f(empty, embedded.ErrNotEmpty)
	s, err := embedded.Open(embedded.Config{Dir: empty, FreeBytes: plenty})
	must(t, err)
	f(empty, journal.ErrLocked)
	must(t, s.Close())
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(t.TempDir(), link))
	f(link, nil)
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is replaced: %v, %v", info, err)
	}
	beside := filepath.Join(t.TempDir(), "store")
	must(t, os.Mkdir(beside+".import", 0o700)) // where an earlier version built
	must(t, os.WriteFile(filepath.Join(beside+".import", "letter"), nil, 0o600))
	f(beside, nil)
	if _, err := os.Stat(filepath.Join(beside+".import", "letter")); err != nil {
		t.Errorf("what is beside it: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	other := filepath.Join(t.TempDir(), "other")
	_, err = Import(ctx, strings.NewReader(whole), uint64(len(whole)), other, journal.Always, &canceler{n: 5, cancel: cancel})
	if _, also := os.Stat(other); !errors.Is(err, context.Canceled) || also == nil {
		t.Errorf("interrupted: %v, %v", err, also)
	}
	ctx, cancel = context.WithCancel(t.Context())
	_, err = Import(ctx, &silent{cancel: cancel, until: t.Context()}, 0, other, journal.Always, nothing{})
	if !errors.Is(err, context.Canceled) || errors.As(err, new(*ImportError)) {
		t.Errorf("interrupted while nothing comes: %v", err)
	}
	if names, _ := os.ReadDir(filepath.Dir(other)); len(names) != 0 {
		t.Errorf("left %v", names)
	}
}

// silent is a pipe into which nothing is written; the first reader interrupts the import.
type silent struct {
	cancel context.CancelFunc
	until  context.Context
}

// Read implements io.Reader.
func (s *silent) Read([]byte) (int, error) {
	s.cancel()
	<-s.until.Done()
	return 0, io.EOF
}

// TestLongestLine: a line at the limit is read, and one byte more is refused.
func TestLongestLine(t *testing.T) {
	f := func(n int, want error) {
		t.Helper()
		l := lines{in: bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", n)+"\n"), 16), most: 100}
		if text, err := l.next(); err != want || want == nil && len(text) != n {
			t.Errorf("%d bytes: %d, %v", n, len(text), err)
		}
		if _, err := l.next(); want == nil && err != io.EOF {
			t.Errorf("behind it: %v", err)
		}
	}
	f(100, nil)
	f(101, errLong)
	f(99, nil)
	f(16, nil)
}

// TestLargestRecordFitsALine: every byte of its text an escape.
func TestLargestRecordFitsALine(t *testing.T) {
	const size = 1 << 20
	rec := kernel.AppendChange([]byte{kernel.Tag}, &kernel.Change{Kind: kernel.ChangeTransition, PID: []byte("p"), Reason: bytes.Repeat([]byte{1}, size)})
	if n := len(shown(t, rec)) + len(rec)*4/3; n > maxLine/journal.MaxRecordBytes*len(rec) {
		t.Errorf("a record of %d bytes has a line of %d", len(rec), n)
	}
}

// FuzzImportLine: a line is refused, or is what an export of what was read of it is, but for
// members that it lacks and for space.
func FuzzImportLine(f *testing.F) {
	var r record
	for _, e := range []journal.Entry{
		{Index: 1, Epoch: 1, Time: 5, Claim: true},
		{Index: 2, Epoch: 1, Time: 1 << 60, Record: usage("p", 3)},
	} {
		o, _ := appendEntry(jsonx.Build(nil), &r, &e)
		f.Add(o.End())
	}
	f.Add(appendSnapshot(jsonx.Build(nil), &journal.SnapshotInfo{Index: 4, Through: 5, Epoch: 2, Time: 7, Bytes: 9}).End())
	f.Add(appendPart(jsonx.Build(nil), []byte("part")).End())
	f.Add(appendRows(jsonx.Build(nil), [16]byte{7}, 8).End())
	f.Add(appendRow(jsonx.Build(nil), []byte("key"), []byte("value")).End())
	f.Add(appendEnd(jsonx.Build(nil), 9).End())
	f.Add([]byte(`{"kind":"unreadable","index":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var d, again decoder
		var l, m line
		if d.decode(text, &l) != nil {
			return
		}
		shown := bytes.Clone(d.shown)
		if err := again.decode(shown, &m); err != nil {
			t.Fatalf("%s is taken, and its export %s is not: %v", text, shown, err)
		}
		if !bytes.Equal(again.shown, shown) || fmt.Sprintf("%+v", l) != fmt.Sprintf("%+v", m) {
			t.Errorf("%s is read as %+v, and its export as %+v", text, l, m)
		}
	})
}
