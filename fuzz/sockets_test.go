package fuzz

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/ipctest"
	"trunkline/fuzz/rounds"
)

// TestSockets holds random conversations over sockets, three connections at a time, which end in
// every way a connection can. Afterwards the server serves, and nothing of them is left.
func TestSockets(t *testing.T) {
	ignore := append(kit.Kept(), goleak.IgnoreCurrent())
	for seed := range uint64(rounds.Of(6, 6)) {
		before := descriptors(t)
		srv := ipctest.Start(t, ipctest.With(func(c *ipctest.Config) {
			c.StreamBufferEvents = []int{0, 2, 8}[seed%3]
			c.MaxStreamsPerConnection = []int{0, 3}[seed%2]
		}))
		var wg sync.WaitGroup
		for n := range 3 {
			talk := newTalk(t, srv.Addr, rand.New(rand.NewPCG(seed, uint64(n))))
			wg.Go(talk.run)
		}
		wg.Wait()
		stillServes(t, srv)
		srv.Drain()
		waitFor(t, "descriptors to be closed", func() error {
			if now := descriptors(t); now > before {
				return fmt.Errorf("%d open, %d before", now, before)
			}
			return nil
		})
	}
	if err := goleak.Find(ignore...); err != nil {
		t.Error(err)
	}
}

func descriptors(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("descriptors cannot be counted here")
	}
	return len(list)
}

// waitFor tries until it succeeds; only a failure takes long.
func waitFor(t *testing.T, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s: %v", what, err)
		}
		time.Sleep(time.Millisecond)
	}
}

// stillServes asks a fresh connection for the status until nothing of the former ones shows.
func stillServes(t *testing.T, srv *ipctest.Server) {
	t.Helper()
	nc, err := net.Dial("tcp", srv.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	waitFor(t, "the connections to be gone", func() error {
		payload := appendValue(nil, object{{"id", "x"}, {"service", "kernel"}, {"method", "GetSystemStatus"}, {"body", object{}}}, nil)
		if _, err := nc.Write(appendFrame(nil, request, payload)); err != nil {
			t.Fatal(err)
		}
		f, err := nextFrame(nc)
		if err != nil || f.typ != response {
			t.Fatalf("status: %v %v", f, err)
		}
		if b := srv.Service.Stats().Bus; b.ActiveSubscribers != 0 || b.PendingQueries != 0 || b.BufferedBytes != 0 {
			return fmt.Errorf("the bus holds %+v", b)
		}
		return nil
	})
}
