package journal_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"trunkline/engine/journal"
)

// Place is where stores are opened, one after the other, like a directory.
type Place struct {
	// Mode is what the stores are made for.
	Mode journal.Mode
	// Open opens the store. The one before was closed, or ended with Crash or Kill.
	Open func() (journal.Store, error)
	// Crash ends the open store as a power loss does: what was not synced may be lost. nil: this
	// place cannot.
	Crash func()
	// Kill ends the open store as the death of its process does: what was handed to the operating
	// system stays. nil: this place cannot.
	Kill func()
	// Crowded is set where other work in this process allocates.
	Crowded bool
}

// tb is what a test and a property have in common.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

// life is one owner of a journal, from Open to Close, with the state that its records make.
type life struct {
	t     tb
	store journal.Store
	log   *journal.Log
	state map[journal.Index]string
	from  journal.Index // of the snapshot
}

// smallBlocks makes a few records fill a block.
func smallBlocks(c *journal.Config) { c.MaxBlockBytes = 1 << 10 }

// begin opens a place and fails the test if that is refused.
func begin(t tb, p Place, set ...func(*journal.Config)) *life {
	t.Helper()
	l, err := tryBegin(t, p, nil, set...)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return l
}

// tryBegin opens a place, with its store in a wrapping, and builds the state.
func tryBegin(t tb, p Place, wrap func(journal.Store) journal.Store, set ...func(*journal.Config)) (*life, error) {
	t.Helper()
	store, err := p.Open()
	if err != nil {
		return nil, err
	}
	if wrap != nil {
		store = wrap(store)
	}
	cfg := journal.Config{Mode: p.Mode}
	for _, f := range set {
		f(&cfg)
	}
	l := &life{t: t, store: store, state: make(map[journal.Index]string)}
	if l.log, err = journal.Open(store, cfg); err != nil {
		return l, errors.Join(err, store.Close())
	}
	if err := l.restore(); err != nil {
		return l, errors.Join(err, l.log.Close())
	}
	return l, nil
}

func (l *life) restore() (err error) {
	if l.from, err = l.log.LoadSnapshot(l.load); err != nil {
		return err
	}
	last := l.from
	return l.log.Replay(l.from, func(i journal.Index, rec []byte) error {
		if i <= last {
			return fmt.Errorf("record %d after record %d", i, last)
		}
		last = i
		l.state[i] = string(rec)
		return nil
	})
}

// load reads a state: pairs of an index and a text.
func (l *life) load(r io.Reader, _ journal.Index, _ uint64) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	for rest := bytes.NewBuffer(b); rest.Len() > 0; {
		i, err := binary.ReadUvarint(rest)
		if err != nil {
			return err
		}
		n, err := binary.ReadUvarint(rest)
		if err != nil || n > uint64(rest.Len()) {
			return fmt.Errorf("cannot read state: a text of %d bytes: %v", n, err)
		}
		l.state[i] = string(rest.Next(int(n)))
	}
	return nil
}

// snapshot writes the state as of now.
func (l *life) snapshot() error {
	last := l.log.Appended()
	return l.log.WriteSnapshot(last, func(w io.Writer) error {
		var b []byte
		for i := journal.Index(1); i <= last; i++ {
			if rec, ok := l.state[i]; ok {
				b = binary.AppendUvarint(b[:0], i)
				b = binary.AppendUvarint(b, uint64(len(rec)))
				if _, err := w.Write(append(b, rec...)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// append appends a record and remembers it.
func (l *life) append(rec string) journal.Index {
	i := l.log.Append([]byte(rec))
	l.state[i] = rec
	return i
}

// appendMany appends n records of a size, each different. They fill blocks, however fast the
// committer is.
func (l *life) appendMany(n, size int) {
	for range n - 1 {
		rec := text(l.log.Appended()+1, size)
		l.state[l.log.Enqueue([]byte(rec))] = rec
	}
	if n > 0 {
		l.append(text(l.log.Appended()+1, size))
	}
}

// text makes a record that names its index.
func text(i journal.Index, size int) string {
	s := fmt.Sprintf("%d;", i)
	for len(s) < size {
		s += s
	}
	return s[:size]
}

// close closes the journal and fails the test if that does not work.
func (l *life) close() {
	l.t.Helper()
	if err := l.log.Close(); err != nil {
		l.t.Fatalf("close: %v", err)
	}
}

// wantState compares the states of two lives.
func (l *life) wantState(want map[journal.Index]string) {
	l.t.Helper()
	for i, rec := range want {
		if got, ok := l.state[i]; got != rec || !ok {
			l.t.Fatalf("record %d is %.40q (there: %v), want %.40q", i, got, ok, rec)
		}
	}
	if len(l.state) != len(want) {
		l.t.Fatalf("%d records, want %d", len(l.state), len(want))
	}
}

// upTo returns the part of a state up to an index.
func upTo(state map[journal.Index]string, last journal.Index) map[journal.Index]string {
	out := make(map[journal.Index]string)
	for i, rec := range state {
		if i <= last {
			out[i] = rec
		}
	}
	return out
}
