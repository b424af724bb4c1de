package builtin

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

// place notes what a tool does with its place. away is called when the tool leaves it.
type place struct {
	worked int64
	away   func()
	inside bool
}

func (p *place) Worked(_ context.Context, n int64) error { p.worked += n; return nil }
func (p *place) Leave()                                  { p.inside = false; p.away() }
func (p *place) Return(context.Context) error            { p.inside = true; return nil }

// TestToolsTellWhatTheyWorkOn: every tool whose work the caller decides notes all of it, so that
// the server can put it with the long ones.
func TestToolsTellWhatTheyWorkOn(t *testing.T) {
	b := newBench(t)
	const size = 2 << 20
	line := `{"ts_ms":1,"text":"` + strings.Repeat("x", 100) + `"}` + "\n"
	b.write("base/large", strings.Repeat(line, size/len(line)+1))
	b.write("base/work/memory/s.jsonl", strings.Repeat(line, size/len(line)+1))
	b.write("base/work/vectordb/s/schema.json", `{"dim":16}`)
	b.write("base/work/vectordb/s/embeddings.f32", string(bytes.Repeat([]byte{0}, size)))
	f := func(aid, input string) {
		t.Helper()
		p := &place{}
		aid = "AID." + aid + ".v1"
		r := b.byID[aid].Run(tool.WithPlace(t.Context(), p), callOf(aid, []byte(input), new(sessionstate.State)))
		if r.Status() != tool.OK || p.worked < size-256<<10 || p.worked > size+256<<10 {
			t.Errorf("%s: %v %q, worked on %d", aid, r.Status(), r.ErrorText(), p.worked)
		}
	}
	f("HASH.DIGEST", `{"path":"large"}`)
	f("HASH.DIGEST", `{"text":"`+strings.Repeat("x", size)+`"}`)
	f("ERROR_SCAN", `{"input_path":"large","pattern":"y"}`)
	f("MEMORY.SEARCH", `{"stream":"s","contains":"y","max_bytes":4194304}`)
	f("MEMORY.QUERY", `{"stream":"s","query":"x","max_bytes":4194304,"max_entries":20000}`)
	f("VECDB.QUERY", `{"stream":"s","query":"x"}`)
}

// TestWritersWaitWithoutTheirPlace: for the lock of another writer.
func TestWritersWaitWithoutTheirPlace(t *testing.T) {
	b := newBench(t)
	for aid, file := range map[string]string{
		"AID.MEMORY.APPEND.v1": "base/work/memory/s.jsonl",
		"AID.VECDB.UPSERT.v1":  "base/work/vectordb/s/embeddings.f32",
	} {
		b.write(file, "")
		f, err := os.Open(b.path(file))
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		p := &place{inside: true, away: func() { f.Close() }}
		r := b.byID[aid].Run(tool.WithPlace(t.Context(), p), callOf(aid, []byte(`{"stream":"s","text":"x"}`), new(sessionstate.State)))
		if r.Status() != tool.OK || !p.inside {
			t.Errorf("%s: %v %q, has a place: %v", aid, r.Status(), r.ErrorText(), p.inside)
		}
	}
}
