package natslog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"trunkline/engine/journal/replicated"
	"trunkline/engine/journal/replicated/natslog"
	"trunkline/fuzz/kit/natstest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// block returns an append of a block.
func block(after uint64, id string, data []byte) *replicated.Append {
	return &replicated.Append{Message: replicated.Message{Kind: replicated.KindBlock, First: after + 100, Data: data}, After: after, ID: id}
}

// sequences returns the sequences that a read shows.
func sequences(t *testing.T, l *natslog.Log, from, to uint64) (seqs []uint64) {
	t.Helper()
	must(t, l.Read(context.Background(), from, to, func(m *replicated.Message) error { seqs = append(seqs, m.Seq); return nil }))
	return seqs
}

// TestStream holds the streams of a cluster to the contract of a replicated.Stream.
func TestStream(t *testing.T) {
	c := natstest.New(t)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, l *natslog.Log)
	}{
		{"Appends", testAppends}, {"Marks", testMarks}, {"Parts", testParts}, {"Pipeline", testPipeline}, {"Sizes", testSizes},
		{"Reads", testReads}, {"Purge", testPurge}, {"Chunks", testChunks},
	} {
		t.Run(test.name, func(t *testing.T) {
			nc := c.Connect(0)
			defer nc.Close()
			test.run(t, c.Open(nc, test.name, natstest.Patient))
		})
	}
}

// testAppends: a message is stored behind the sequence it names, and under its id once.
func testAppends(t *testing.T, l *natslog.Log) {
	for i := range uint64(3) {
		for range 2 {
			if o := l.Append(block(i, fmt.Sprint("id", i), []byte("x")))(); o.Err != nil || o.Seq != i+1 {
				t.Fatalf("append %d: %+v", i, o)
			}
		}
	}
	for _, after := range []uint64{0, 2, 4} {
		if o := l.Append(block(after, fmt.Sprint("other", after), []byte("x")))(); !errors.Is(o.Err, replicated.ErrNotStored) {
			t.Errorf("append behind %d of 3: %+v", after, o)
		}
	}
	if o := l.Append(&replicated.Append{Message: replicated.Message{Kind: 9}, After: 3, ID: "kind"})(); !errors.Is(o.Err, replicated.ErrNotStored) {
		t.Errorf("a message of no kind: %+v", o)
	}
	if st, err := l.State(context.Background()); err != nil || st.First != 1 || st.Last != 3 || st.Deleted != 0 || st.Control != nil {
		t.Errorf("state %+v: %v", st, err)
	}
}

// testMarks: marks are stored with their message or not at all, and with its id once.
func testMarks(t *testing.T, l *natslog.Log) {
	a := block(0, "claim", []byte("x"))
	a.Marks, a.MarksFirst = 5, 7
	for range 2 {
		if o := l.Append(a)(); o.Err != nil || o.Seq != 6 {
			t.Fatalf("append: %+v", o)
		}
	}
	other := *a
	other.ID = "other"
	if o := l.Append(&other)(); !errors.Is(o.Err, replicated.ErrNotStored) {
		t.Errorf("another one: %+v", o)
	}
	if o := l.Append(&replicated.Append{Message: replicated.Message{Kind: replicated.KindControl, First: 100, Data: []byte("c")}, After: 6, ID: "c"})(); o.Err != nil {
		t.Fatal(o.Err)
	}
	must(t, l.Read(context.Background(), 1, 7, func(m *replicated.Message) error {
		want := replicated.Message{Seq: m.Seq, Kind: replicated.KindMark, First: 7}
		switch m.Seq {
		case 6:
			want.Kind, want.First, want.Data = replicated.KindBlock, 100, []byte("x")
		case 7:
			want.Kind, want.First, want.Data = replicated.KindControl, 100, []byte("c")
		}
		if m.Kind != want.Kind || m.First != want.First || !bytes.Equal(m.Data, want.Data) {
			t.Errorf("message %+v, want %+v", *m, want)
		}
		return nil
	}))
	st, err := l.State(context.Background())
	if err != nil || st.Last != 7 || st.Control == nil || st.Control.Seq != 7 || string(st.Control.Data) != "c" {
		t.Errorf("state %+v: %v", st, err)
	}
}

// testParts: a block in parts is stored whole, and with its id once.
func testParts(t *testing.T, l *natslog.Log) {
	a := block(0, "parts", []byte("0"))
	a.Marks = 5
	for i := range 20 {
		a.Rest = append(a.Rest, fmt.Appendf(nil, "%d", i+1))
	}
	a.Parts = len(a.Rest)
	for range 2 {
		if o := l.Append(a)(); o.Err != nil || o.Seq != 26 {
			t.Fatalf("append: %+v", o)
		}
	}
	b := block(26, "more", []byte("0"))
	b.Rest, b.Parts = a.Rest, a.Parts
	for range 2 {
		if o := l.Append(b)(); o.Err != nil || o.Seq != 47 {
			t.Fatalf("append without marks: %+v", o)
		}
	}
	c := *b
	c.ID = "other"
	if o := l.Append(&c)(); !errors.Is(o.Err, replicated.ErrNotStored) {
		t.Errorf("another one: %+v", o)
	}
	must(t, l.Read(context.Background(), 6, 26, func(m *replicated.Message) error {
		kind, parts := replicated.KindPart, 0
		if m.Seq == 6 {
			kind, parts = replicated.KindBlock, 20
		}
		if m.Kind != kind || m.Parts != parts || m.First != 100 || string(m.Data) != fmt.Sprint(m.Seq-6) {
			t.Errorf("message %+v", *m)
		}
		return nil
	}))
}

// testPipeline: several appends are on their way; one that does not fit has those behind it not
// fit.
func testPipeline(t *testing.T, l *natslog.Log) {
	var waits []func() replicated.Outcome
	for i := range uint64(4) {
		waits = append(waits, l.Append(block(i, fmt.Sprint(i), []byte("x"))))
	}
	for i, wait := range waits {
		if o := wait(); o.Err != nil || o.Seq != uint64(i+1) {
			t.Fatalf("append %d: %+v", i, o)
		}
	}
	waits = nil
	for i := range uint64(4) {
		waits = append(waits, l.Append(block(5+i, fmt.Sprint("gap", i), []byte("x"))))
	}
	for i, wait := range waits {
		if o := wait(); !errors.Is(o.Err, replicated.ErrNotStored) {
			t.Errorf("append %d behind a gap: %+v", i, o)
		}
	}
}

// testSizes: what the servers take is stored, and what they do not take is refused, not lost.
func testSizes(t *testing.T, l *natslog.Log) {
	if o := l.Append(block(0, "most", make([]byte, natstest.MaxPayload-512)))(); o.Err != nil {
		t.Errorf("a message at the limit: %v", o.Err)
	}
	if o := l.Append(block(1, "more", make([]byte, natstest.MaxPayload-511)))(); !errors.Is(o.Err, replicated.ErrNotStored) {
		t.Errorf("a message beyond the limit: %+v", o)
	}
	must(t, l.Read(context.Background(), 1, 1, func(m *replicated.Message) error {
		if len(m.Data) != natstest.MaxPayload-512 {
			t.Errorf("%d bytes were read", len(m.Data))
		}
		return nil
	}))
}

// testReads: any range is read, an error ends a read, and one to Forever waits.
func testReads(t *testing.T, l *natslog.Log) {
	for i := range uint64(140) {
		if o := l.Append(block(i, fmt.Sprint(i), []byte("x")))(); o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	for _, r := range [][2]uint64{{1, 140}, {1, 1}, {140, 140}, {139, 140}, {5, 68}, {5, 69}, {77, 140}, {76, 140}} {
		got := sequences(t, l, r[0], r[1])
		if uint64(len(got)) != r[1]-r[0]+1 || got[0] != r[0] || !slices.IsSorted(got) {
			t.Errorf("messages %d to %d: %v", r[0], r[1], got)
		}
	}
	if got := sequences(t, l, 141, 141); got != nil {
		t.Errorf("a message that is not there: %v", got)
	}
	stop := errors.New("stop")
	for _, to := range []uint64{1, 140} {
		if err := l.Read(context.Background(), 1, to, func(*replicated.Message) error { return stop }); err != stop {
			t.Errorf("an error of f: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seen := 0
	err := l.Read(ctx, 138, replicated.Forever, func(m *replicated.Message) error {
		if seen++; m.Seq == 140 {
			go func() { l.Append(block(140, "late", []byte("x")))() }()
		}
		if m.Seq == 141 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || seen != 4 {
		t.Errorf("a read to Forever: %v after %d messages", err, seen)
	}
}

// testPurge: the beginning goes, sequences go on, and a read from before shows what is left.
func testPurge(t *testing.T, l *natslog.Log) {
	for i := range uint64(20) {
		if o := l.Append(block(i, fmt.Sprint(i), []byte("x")))(); o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	must(t, l.Purge(context.Background(), 11))
	st, err := l.State(context.Background())
	if err != nil || st.First != 11 || st.Last != 20 || st.Deleted != 0 {
		t.Errorf("state %+v: %v", st, err)
	}
	if got := sequences(t, l, 5, 20); len(got) != 10 || got[0] != 11 {
		t.Errorf("messages from 5 on: %v", got)
	}
	must(t, l.Purge(context.Background(), 11))
	if o := l.Append(block(20, "next", []byte("x")))(); o.Err != nil || o.Seq != 21 {
		t.Errorf("append behind a purge: %+v", o)
	}
	must(t, l.Purge(context.Background(), 22))
	if st, err = l.State(context.Background()); err != nil || st.First != 22 || st.Last != 21 {
		t.Errorf("state of what is empty %+v: %v", st, err)
	}
}

// testChunks holds the stream of chunks to the contract of replicated.Chunks.
func testChunks(t *testing.T, l *natslog.Log) {
	ctx := context.Background()
	for i := range 20 {
		for range 2 { // the same chunk twice is one
			must(t, l.Put(ctx, "1-a", uint32(i), fmt.Appendf(nil, "a%d", i)))
			must(t, l.Put(ctx, "2-b", uint32(i), fmt.Appendf(nil, "b%d", i)))
		}
	}
	sets, err := l.Sets(ctx)
	slices.Sort(sets)
	if err != nil || !slices.Equal(sets, []string{"1-a", "2-b"}) {
		t.Errorf("sets %v: %v", sets, err)
	}
	n := 0
	must(t, l.Get(ctx, "2-b", 20, func(c []byte) error {
		if string(c) != fmt.Sprint("b", n) {
			t.Errorf("chunk %d is %q", n, c)
		}
		n++
		return nil
	}))
	if err := l.Get(ctx, "2-b", 21, func([]byte) error { return nil }); err == nil {
		t.Error("more chunks were read than there are")
	}
	stop := errors.New("stop")
	if err := l.Get(ctx, "2-b", 20, func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of f: %v", err)
	}
	must(t, l.Drop(ctx, "1-a"))
	must(t, l.Drop(ctx, "1-a"))
	if sets, err = l.Sets(ctx); err != nil || len(sets) != 1 {
		t.Errorf("sets after a drop %v: %v", sets, err)
	}
	must(t, l.Get(ctx, "1-a", 0, nil))
	if err := l.Get(ctx, "1-a", 1, func([]byte) error { return nil }); err == nil {
		t.Error("a chunk of a set that was dropped was read")
	}
}
