package journaltool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/kernel"
)

// plenty is a disk that is never full.
func plenty() (uint64, error) { return 1 << 40, nil }

// usage is a record as a server writes it.
func usage(pid string, calls int64) []byte {
	return kernel.AppendChange([]byte{'k'}, &kernel.Change{Kind: kernel.ChangeUsage, PID: []byte(pid), Usage: kernel.Usage{kernel.LLMCalls: calls}})
}

// state is a snapshot as a server frames it: n records of the kernel, of 1 kB each.
func state(n int) []byte {
	var b []byte
	put := func(tag byte, body []byte) {
		b = append(append(binary.AppendUvarint(b, uint64(len(body)+1)), tag), body...)
	}
	put('t', make([]byte, 8))
	for range n {
		put('k', make([]byte, 1024))
	}
	put('e', make([]byte, 8))
	return b
}

// plan is what a made journal holds.
type plan struct {
	mode      journal.Mode
	groups    int   // blocks of 10 records after the claim
	snapshots []int // after which groups there is a snapshot
	record    func(i int) []byte
	spoil     func(first journal.Index, block []byte) []byte // what is written in the place of a block, nil for nothing
	dropped   journal.Index                                  // blocks before it are dropped at the end
	snapshot  func() []byte                                  // nil: state(300)
}

const perGroup = 10

// made builds a journal and returns its directory. The claim has index 1, and record i has i+2.
// Group g is a block at 11g+2 and one from 11g+3 to 11g+12.
func made(t *testing.T, p plan) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := embedded.Open(embedded.Config{Dir: dir, Mode: p.mode, FreeBytes: plenty})
	must(t, err)
	to := &spoiler{Store: s, spoil: p.spoil, entered: make(chan bool), gate: make(chan bool)}
	l, err := journal.Open(to, journal.Config{Mode: p.mode})
	must(t, err)
	must(t, l.Replay(0, func(journal.Index, []byte) error { return nil }))
	if p.record == nil {
		p.record = func(i int) []byte { return usage(fmt.Sprint("p", i), int64(i)) }
	}
	if p.snapshot == nil {
		p.snapshot = func() []byte { return state(300) }
	}
	for g := range p.groups {
		first := g * (perGroup + 1)
		to.gated = true
		l.Append(p.record(first))
		<-to.entered // the first is being written alone, so that the others come together
		for i := range perGroup {
			l.Append(p.record(first + 1 + i))
		}
		to.gated = false
		to.gate <- true
		must(t, l.Barrier(t.Context()))
		if slices.Contains(p.snapshots, g) {
			must(t, l.WriteSnapshot(l.Durable(), func(w io.Writer) error {
				_, err := w.Write(p.snapshot())
				return err
			}))
		}
	}
	must(t, l.Close())
	if p.dropped > 0 {
		s, err := embedded.Open(embedded.Config{Dir: dir, Mode: p.mode, FreeBytes: plenty})
		must(t, err)
		must(t, errors.Join(s.DropBlocks(p.dropped), s.Close()))
	}
	return dir
}

// spoiler is a store that keeps something else than it is given, and waits at its gate.
type spoiler struct {
	journal.Store
	spoil         func(first journal.Index, block []byte) []byte
	gated         bool // ordered by the channels
	entered, gate chan bool
}

func (s *spoiler) WriteBlock(first journal.Index, block []byte) error {
	if s.gated {
		s.entered <- true
		<-s.gate
	}
	if s.spoil != nil {
		if block = s.spoil(first, slices.Clone(block)); block == nil {
			return nil
		}
	}
	return s.Store.WriteBlock(first, block)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start does what a server does when it starts in dir: to is the --recover-to-index, 0 for
// nothing. It returns the index that was replayed last, or that of the snapshot.
func start(dir string, mode journal.Mode, to journal.Index) (last journal.Index, err error) {
	s, err := embedded.Open(embedded.Config{Dir: dir, Mode: mode, FreeBytes: plenty, AcceptLoss: to != 0})
	if err != nil {
		return 0, err
	}
	l, err := journal.Open(s, journal.Config{Mode: mode, RecoverTo: to})
	if err != nil {
		return 0, errors.Join(err, s.Close())
	}
	last, err = l.LoadSnapshot(func(r io.Reader, _ journal.Index, _ uint64) error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
	if err == nil {
		err = l.Replay(last, func(i journal.Index, rec []byte) error {
			last = i
			if rec[0] != 'k' {
				return errors.New("no change")
			}
			return nil
		})
	}
	return last, errors.Join(err, l.Close())
}

// file returns the last file of dir that fits a pattern.
func file(t *testing.T, dir, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatal("no file", pattern, err)
	}
	return slices.Max(names)
}

// edit changes the bytes of a file.
func edit(t *testing.T, name string, change func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	must(t, err)
	must(t, os.WriteFile(name, change(b), 0o600))
}

// verified verifies dir without a meter.
func verified(t *testing.T, dir string) *Report {
	t.Helper()
	r, err := Verify(t.Context(), dir, nothing{})
	must(t, err)
	return r
}
