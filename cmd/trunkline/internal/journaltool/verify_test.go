package journaltool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
)

func TestVerifyASoundJournal(t *testing.T) {
	for _, mode := range []journal.Mode{journal.Always, journal.Interval} {
		dir := made(t, plan{mode: mode, groups: 6, snapshots: []int{1, 3}})
		r := verified(t, dir)
		if !r.Sound || r.Err() != nil || r.Recovery != nil || r.Mode != mode.String() || !r.Closed || r.Torn != nil {
			t.Errorf("%+v", r)
		}
		if r.LastIndex != 67 || r.Records != r.LastIndex-r.FirstIndex+1-r.Claims || r.LastEpoch != 1 || r.LastTime == nil {
			t.Errorf("%+v", r.Totals)
		}
		if len(r.Snapshots) != 2 || r.Snapshots[1].Index != 45 || r.Snapshots[1].Records != 302 || r.Snapshots[1].Bytes != uint64(len(state(300))) {
			t.Errorf("%+v", r.Snapshots)
		}
		again := verified(t, dir)
		if again.LastIndex != 67 || again.LastEpoch != 1 {
			t.Errorf("a verification claimed the journal: %+v", again.Totals)
		}
		if last, err := start(dir, mode, 0); err != nil || last != 67 {
			t.Errorf("start: %d, %v", last, err)
		}
	}
}

// TestDamage makes each kind of damage, and holds the report against what a server really does:
// whether it starts, and what it has after a recovery to the index that is named.
func TestDamage(t *testing.T) {
	logged := plan{groups: 6}
	long := plan{groups: 30, record: func(i int) []byte { return usage(fmt.Sprintf("p%-250d", i), int64(i)) }} // several pages of the log
	kept := plan{groups: 6, snapshots: []int{1, 3}}
	flip := func(text string) func(b []byte) []byte {
		return func(b []byte) []byte { b[bytes.Index(b, []byte(text))] ^= 0x10; return b }
	}
	at := func(g int) journal.Index { return journal.Index(g*(perGroup+1) + 3) }
	block := func(p plan, g int, change func(b []byte) []byte) plan {
		p.spoil = func(first journal.Index, b []byte) []byte {
			if first == at(g) {
				return change(b)
			}
			return b
		}
		return p
	}
	broken := func(p plan, record int) plan {
		p.record = func(i int) []byte {
			if i == record {
				return []byte("?")
			}
			return usage("p", 1)
		}
		return p
	}
	type want struct {
		index    journal.Index // of the first damage
		starts   bool
		recovers journal.Index // 0: nothing can be done
	}
	f := func(name string, p plan, pattern string, change func([]byte) []byte, w want) {
		for _, p.mode = range []journal.Mode{journal.Always, journal.Interval} {
			t.Run(name+"/"+p.mode.String(), func(t *testing.T) {
				dir := made(t, p)
				path := ""
				if pattern != "" {
					path = file(t, dir, pattern)
					if change == nil {
						must(t, os.Remove(path))
					} else {
						edit(t, path, change)
					}
				}
				r := verified(t, dir)
				if r.Sound || r.DamageCount == 0 || r.Damages[0].Index != w.index || r.Recovery == nil {
					t.Fatalf("sound %v, damages %+v, want index %d", r.Sound, r.Damages, w.index)
				}
				if path != "" && !strings.Contains(r.Damages[0].Where, dir) && !strings.Contains(r.Damages[0].Where, "generation") {
					t.Errorf("damage in %q, not in a file", r.Damages[0].Where)
				}
				v := r.Recovery
				if v.Starts != w.starts || v.Possible != (w.recovers != 0) || v.Index != w.recovers || v.Advice() == "" {
					t.Errorf("recovery %+v, want %+v", v, w)
				}
				compare(t, dir, p.mode, v)
			})
		}
	}
	f("log flipped", logged, "*.log", flip("p25"), want{index: 25, recovers: 24})
	f("long log flipped", long, "*.log", flip("p105 "), want{index: 102, recovers: 101})
	f("log cut", logged, "*.log", func(b []byte) []byte { return b[:bytes.Index(b, []byte("p25"))] }, want{index: 25, recovers: 24})
	f("log missing", logged, "*.log", nil, want{index: 1})
	f("stamp missing", logged, "JOURNAL", nil, want{})
	f("manifest missing", kept, "MANIFEST-*", nil, want{})
	// The newest SSTable holds the newest snapshot.
	half := func(b []byte) []byte { return b[:len(b)/2] }
	f("newest snapshot missing", kept, "*.sst", nil, want{starts: true})
	f("newest snapshot cut", kept, "*.sst", half, want{starts: true})
	f("only snapshot missing, and the log whole", plan{groups: 6, snapshots: []int{1}}, "*.sst", nil, want{starts: true})
	only := plan{groups: 6, snapshots: []int{1}, dropped: 13}
	f("only snapshot missing, and the log cut", only, "000004.sst", nil, want{})
	meta := func(b []byte) []byte {
		at := -1
		for mode := range byte(2) { // the number of chunks, and the beginning of the meta
			at = max(at, bytes.LastIndex(b, []byte{0, 0, 0, 2, 1, mode, 0, 0, 0, 0, 0, 0}))
		}
		b[at+40] ^= 1
		return b
	}
	f("meta of the newest snapshot flipped", kept, "*.sst", meta, want{starts: true})
	f("meta of the only snapshot flipped, and the log cut", only, "000004.sst", meta, want{})

	f("newest snapshot flipped", kept, "*.sst", func(b []byte) []byte { b[secondChunk] ^= 1; return b }, want{index: 45, recovers: 67})

	flipped := func(b []byte) []byte { b[60] ^= 1; return b }
	lost := func([]byte) []byte { return nil }
	f("block flipped", block(logged, 3, flipped), "", nil, want{index: at(3), recovers: at(3) - 1})
	f("block missing", block(logged, 3, lost), "", nil, want{index: at(3), recovers: at(3) - 1})
	f("last block flipped", block(logged, 5, flipped), "", nil, want{index: at(5), recovers: at(5) - 1})
	f("block flipped behind the snapshots", block(kept, 4, flipped), "", nil, want{index: at(4), recovers: at(4) - 1})
	f("block flipped between the snapshots", block(kept, 2, flipped), "", nil, want{index: at(2), starts: true})
	f("record of no kind", broken(logged, 25), "", nil, want{index: 27, recovers: at(2) - 1})
	f("record of no kind in the first block", broken(logged, 3), "", nil, want{index: 5, recovers: at(0) - 1})
}

// TestOlderSnapshotMissing: what a start does not need costs nothing, and is named.
func TestOlderSnapshotMissing(t *testing.T) {
	for _, mode := range []journal.Mode{journal.Always, journal.Interval} {
		dir := made(t, plan{mode: mode, groups: 6, snapshots: []int{1, 3}})
		names, _ := filepath.Glob(filepath.Join(dir, "*.sst"))
		must(t, os.Remove(slices.Min(names)))
		r := verified(t, dir)
		if r.Sound || !r.Recovery.Starts || r.Damages[0].Where != slices.Min(names) || !strings.Contains(r.Recovery.Advice(), "gives up the snapshots [1]") {
			t.Errorf("%s: %+v %+v", mode, r.Damages, r.Recovery)
		}
		compare(t, dir, mode, r.Recovery)
		if last, err := start(dir, mode, 0); err != nil || last != 67 {
			t.Errorf("%s: %d, %v", mode, last, err)
		}
		if r = verified(t, dir); !r.Sound || len(r.Snapshots) != 1 {
			t.Errorf("%s: after a start: %+v %+v", mode, r.Damages, r.Snapshots)
		}
	}
}

// compare does in copies of dir what the report advises.
func compare(t *testing.T, dir string, mode journal.Mode, v *Recovery) {
	t.Helper()
	_, err := start(clone(t, dir), mode, 0)
	if (err == nil) != v.Starts {
		t.Errorf("a server says %v, the report that it starts: %v", err, v.Starts)
	}
	if !v.Possible {
		return
	}
	again := clone(t, dir)
	if last, err := start(again, mode, v.Index); err != nil || last != v.Index && v.Index > 1 {
		t.Errorf("recovered to %d: up to %d, %v", v.Index, last, err)
	}
	if r := verified(t, again); !r.Sound {
		t.Errorf("after the recovery: %v", r.Err())
	}
	if v.Index > 2 {
		if last, err := start(clone(t, dir), mode, v.LosesFrom+perGroup); err == nil && last > v.Index {
			t.Errorf("more than up to %d can be recovered", v.Index)
		}
	}
}

func clone(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	must(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

func TestSnapshotDamage(t *testing.T) {
	for _, mode := range []journal.Mode{journal.Always, journal.Interval} {
		bad := func() []byte { return state(300)[:1000] }
		dir := made(t, plan{mode: mode, groups: 6, snapshots: []int{3}, snapshot: bad})
		r := verified(t, dir)
		if r.Sound || len(r.Damages) != 1 || r.Damages[0].Where != "snapshot generation 1" || r.Snapshots[0].Error == "" {
			t.Fatalf("%+v", r)
		}
	}
}

// TestChunkDamage flips a byte of the newest snapshot: no record is lost, because the one before it
// is still there.
func TestChunkDamage(t *testing.T) {
	fill := byte('A')
	dir := made(t, plan{groups: 6, snapshots: []int{1, 3}, snapshot: func() []byte {
		b := bytes.ReplaceAll(state(700), make([]byte, 1024), bytes.Repeat([]byte{fill}, 1024))
		fill++
		return b
	}})
	flipWhere(t, dir, bytes.Repeat([]byte("B"), 900))
	r := verified(t, dir)
	if r.Sound || !strings.Contains(r.Damages[0].Where, ".sst") || r.Snapshots[1].Error == "" || r.Snapshots[0].Error != "" {
		t.Fatalf("%+v %+v", r.Damages, r.Snapshots)
	}
	v := r.Recovery
	if v.Starts || !v.Possible || v.Index != 67 || v.LosesFrom != 0 || len(v.LosesSnapshots) != 1 || v.LosesSnapshots[0] != 2 {
		t.Errorf("%+v", v)
	}
	if !strings.Contains(v.Advice(), "loses no record") {
		t.Error(v.Advice())
	}
	if _, err := start(clone(t, dir), journal.Always, 0); err == nil {
		t.Error("a server starts on it")
	}
	if last, err := start(clone(t, dir), journal.Always, v.Index); err != nil || last != 67 {
		t.Errorf("recovered: %d, %v", last, err)
	}
}

// secondChunk is a place at the beginning of the second chunk of a snapshot. Pebble looks for the
// bit that makes a sum right again, from the beginning on, and that takes long for one that is far
// behind.
const secondChunk = 263_400

// flipWhere flips a bit of the second chunk of a snapshot in the SSTable where the text stands.
func flipWhere(t *testing.T, dir string, text []byte) {
	t.Helper()
	names, _ := filepath.Glob(filepath.Join(dir, "*.sst"))
	for _, name := range names {
		b, err := os.ReadFile(name)
		must(t, err)
		if i := bytes.LastIndex(b[:min(len(b), secondChunk)], text); i >= 0 {
			i = secondChunk // whose sum does not cover a block of the log
			edit(t, name, func(b []byte) []byte { b[i] ^= 1; return b })
			return
		}
	}
	t.Fatal("no file has it")
}

func TestALogWithoutItsBeginning(t *testing.T) {
	dir := made(t, plan{groups: 4, dropped: 13})
	r := verified(t, dir)
	if r.Sound || r.Damages[0].Index != 1 || r.Damages[0].Until != 13 || r.Recovery.Possible || r.Recovery.Starts {
		t.Fatalf("%+v %+v", r.Damages, r.Recovery)
	}
	compare(t, dir, journal.Always, r.Recovery)
}

func TestTornTail(t *testing.T) {
	dir := made(t, plan{groups: 4})
	earlier, err := os.ReadFile(filepath.Join(made(t, plan{groups: 3}), "MARK"))
	must(t, err)
	for _, name := range []string{"MARK", "SYNCED"} { // as if it had died before the last mark
		must(t, os.WriteFile(filepath.Join(dir, name), earlier, 0o600))
	}
	edit(t, file(t, dir, "*.log"), func(b []byte) []byte { return b[:len(b)-100] })
	r := verified(t, dir)
	if !r.Sound || r.Torn == nil || !strings.HasSuffix(r.Torn.File, ".log") || r.LastIndex != 35 {
		t.Fatalf("%+v %+v", r, r.Torn)
	}
	if last, err := start(dir, journal.Always, 0); err != nil || last != 35 {
		t.Errorf("%d %v", last, err)
	}
}

func TestDamagesAreBounded(t *testing.T) {
	f := func(bad int) {
		t.Helper()
		r := verified(t, made(t, plan{groups: 20, record: func(i int) []byte {
			if i < bad {
				return []byte("?")
			}
			return usage("p", 1)
		}}))
		if r.DamageCount != bad || len(r.Damages) != min(bad, maxDamages) {
			t.Errorf("%d damages: %d listed of %d", bad, len(r.Damages), r.DamageCount)
		}
		if open := r.Damages[len(r.Damages)-1].Until == 0; open != (bad > maxDamages) {
			t.Errorf("%d damages: the last one ends: %v", bad, !open)
		}
		if r.Recovery.Index != 1 || r.Recovery.Starts {
			t.Errorf("%d damages: %+v", bad, r.Recovery)
		}
	}
	f(maxDamages)
	f(maxDamages + 1)
}

func TestNothingToVerify(t *testing.T) {
	if _, err := Verify(t.Context(), t.TempDir(), nothing{}); !errors.Is(err, embedded.ErrNoJournal) {
		t.Error(err)
	}
	dir := made(t, plan{groups: 1})
	s, err := embedded.Open(embedded.Config{Dir: dir, FreeBytes: plenty})
	must(t, err)
	if _, err := Verify(t.Context(), dir, nothing{}); !errors.Is(err, journal.ErrLocked) {
		t.Error(err)
	}
	must(t, s.Close())
}

// canceler ends a piece of work at its nth report of progress.
type canceler struct {
	nothing
	n      int
	cancel func()
}

// Set implements Meter.
func (c *canceler) Set(uint64) {
	if c.n--; c.n == 0 {
		c.cancel()
	}
}

func TestWorkCanBeEnded(t *testing.T) {
	dir := made(t, plan{groups: 6, snapshots: []int{3}})
	for n := 1; n < 16; n++ { // in the log, and in the snapshot
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := Verify(ctx, dir, &canceler{n: n, cancel: cancel}); !errors.Is(err, context.Canceled) {
			t.Errorf("verify, after %d: %v", n, err)
		}
		cancel()
	}
}
