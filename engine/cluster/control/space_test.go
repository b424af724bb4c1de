package control

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/engine/journal/replicated"
	"trunkline/fuzz/kit/memstore"
	"trunkline/fuzz/kit/memstream"
)

// cramped is a stream without room for a while.
type cramped struct {
	*memstream.Client
	full atomic.Bool
}

// Append implements replicated.Stream.
func (c *cramped) Append(a *replicated.Append) func() replicated.Outcome {
	if c.full.Load() {
		return func() replicated.Outcome { return replicated.Outcome{Err: replicated.ErrNoRoom} }
	}
	return c.Client.Append(a)
}

// TestAJournalWithoutRoomIsAProblem of its partition while its owner asks again.
func TestAJournalWithoutRoomIsAProblem(t *testing.T) {
	stream := &cramped{Client: memstream.New().Client(1, memstream.Faults{})}
	local, err := memstore.New(memstore.Options{}).Open()
	if err != nil {
		t.Fatal(err)
	}
	st, err := replicated.Open(t.Context(), replicated.Config{Stream: stream, Chunks: stream, Local: local, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	n, leases := &Node{cfg: Config{Partitions: 2}}, []*Lease{{}, {partition: 1}}
	n.Attach(Host{Replica: func(partition int) Replica { return Replica{Lease: leases[partition]} }})
	leases[1].shared.Store(&Store{Store: st})
	if got := n.viewSpace(); len(got) != 0 {
		t.Errorf("%q while nothing is written", got)
	}
	stream.full.Store(true)
	written := make(chan error, 1)
	go func() { written <- st.WriteBlock(1, []byte("x")) }()
	var got []string
	for end := time.Now().Add(time.Minute); len(got) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		got = n.viewSpace()
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], "partition 1: ") || !strings.Contains(got[0], "no room") {
		t.Errorf("%q while there is no room", got)
	}
	stream.full.Store(false)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if got := n.viewSpace(); len(got) != 0 {
		t.Errorf("%q when it is written", got)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}
