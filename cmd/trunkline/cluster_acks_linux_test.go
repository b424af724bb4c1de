package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/engine/cluster/placement"
	"trunkline/fuzz/kit/natstest"
	"trunkline/fuzz/rounds"
)

// maxNATSLine bounds a line of the protocol of NATS, in bytes: the first one of a server is long.
const maxNATSLine = 64 << 10

// ackLoser is the way of a node to a NATS server. It can lose what the server answers to what is
// published, and nothing else.
type ackLoser struct {
	server string
	loses  atomic.Bool
	breaks atomic.Bool // an answer that is lost breaks the connection
	lost   atomic.Int64
}

// listen returns the address of the way, which ends with the test.
func (a *ackLoser) listen(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		stop()
		_ = ln.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { a.join(ctx, c) })
		}
	})
	return ln.Addr().String()
}

func (a *ackLoser) join(ctx context.Context, c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", a.server)
	if err != nil {
		return
	}
	defer s.Close()
	defer context.AfterFunc(ctx, func() { _, _ = c.Close(), s.Close() })()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(s, c)
		_, _ = s.Close(), c.Close()
	})
	_ = a.pass(c, bufio.NewReaderSize(s, maxNATSLine))
	_, _ = s.Close(), c.Close()
	both.Wait()
}

// pass moves what a server sends, line by line, and what follows a line that announces a message.
func (a *ackLoser) pass(to io.Writer, from *bufio.Reader) error {
	for {
		line, err := from.ReadSlice('\n')
		if err != nil {
			return err
		}
		whole := bytes.Clone(line)
		f := bytes.Fields(whole)
		if len(f) > 0 && (string(f[0]) == "MSG" || string(f[0]) == "HMSG") {
			size, err := strconv.Atoi(string(f[len(f)-1]))
			if err != nil {
				return err
			}
			head := len(whole)
			whole = append(whole, make([]byte, size+len("\r\n"))...)
			if _, err = io.ReadFull(from, whole[head:]); err != nil {
				return err
			}
			if a.loses.Load() && isAck(whole[head:]) {
				a.lost.Add(1)
				if a.breaks.Load() {
					return io.ErrClosedPipe
				}
				continue
			}
		}
		if _, err = to.Write(whole); err != nil {
			return err
		}
	}
}

// isAck reports whether a message is the answer to one that was published to the log of a
// partition.
func isAck(data []byte) bool {
	return bytes.HasPrefix(data, []byte("{")) && bytes.Contains(data, []byte(`"stream":"demo_`)) && bytes.Contains(data, []byte(`"seq":`)) &&
		!bytes.Contains(data, []byte(`_SNAP"`)) && !bytes.Contains(data, []byte(`"type":`))
}

// TestClusterLostAcks: the servers of a cluster with two partitions store what is published, and
// their answers do not arrive: for less than a lease, for more, or with the connection. What was
// acknowledged is there, nothing is counted twice, and no tool runs twice for a key.
func TestClusterLostAcks(t *testing.T) {
	longBesideOthers(t)
	const partitions = 2
	r := makeClusterRig(t, 2, t.TempDir, []string{
		"cluster.mode=nats", "cluster.nats_accept_lazy_sync=true", "cluster.lease_ms=500", fmt.Sprint("cluster.partitions=", partitions),
		soakSnapshot, "toolhost.idempotency_ttl_ms=3600000", takesOrders(t),
	})
	servers := natstest.New(t)
	ways := make(map[*clusterNode]*ackLoser)
	for i, n := range r.nodes {
		ways[n] = &ackLoser{server: servers.Addr(i)}
		n.settings = append(n.settings, "cluster.nats_url=nats://"+ways[n].listen(t), "toolhost.root="+n.dir, "toolhost.listen_addr=unix://"+n.tools())
		n.start()
	}
	r.ready(r.nodes...)
	r.nodes[0].surelyOrder("rebalance")
	r.spread(partitions, map[string]int{"n1": 1, "n2": 1})
	h := newCounterHistory(r, slices.Concat(keysOf(t, placement.Process, partitions, 2)...)...)
	load := h.load(2)
	defer load.end()
	o := &replies{replies: make(map[string]map[string]int)}
	stop := make(chan struct{})
	var callers sync.WaitGroup
	end := sync.OnceFunc(func() {
		close(stop)
		callers.Wait()
	})
	defer end()
	for i := range 8 {
		callers.Go(func() {
			callAgain(r.nodes[i%len(r.nodes)].tools(), rand.New(rand.NewPCG(uint64(i), 1)), 900, 2*time.Millisecond, o, stop)
		})
	}
	for range max(rounds.Few(1, 1), soakAsked.rounds/20) {
		for _, f := range []struct{ breaks, all bool }{{}, {breaks: true}, {all: true}} { // some answers, or all until the owner gives up
			load.more(30)
			owner := r.owner(r.nodes...)
			w := ways[owner]
			w.breaks.Store(f.breaks)
			before := w.lost.Load()
			w.loses.Store(true)
			r.until("answers are lost", func() bool { return w.lost.Load() >= before+2 && !f.all || owner.role() != "owner" })
			w.loses.Store(false)
			load.more(30)
		}
	}
	load.end()
	end()
	t.Logf("the counters: %v", h.last())
	h.check()
	ran := make(map[string]int)
	for _, n := range r.nodes {
		countRuns(t, filepath.Join(n.dir, "work", "memory", "once.jsonl"), ran)
		t.Logf("node %s: %d answers lost", n.id, ways[n].lost.Load())
	}
	o.check(t, ran, 100, 20)
}

// tools is the socket at which a node takes calls of tools.
func (n *clusterNode) tools() string { return filepath.Join(n.dir, "t") }

// TestAckLoser: it loses answers of the log, and nothing else.
func TestAckLoser(t *testing.T) {
	msg := func(data string) string { return fmt.Sprintf("MSG _INBOX.a.b 1 %d\r\n%s\r\n", len(data), data) }
	ack := msg(`{"stream":"demo_0","seq":7}`)
	rest := "INFO {}\r\nPING\r\n" + msg(`{"type":"io.nats.jetstream.api.v1.stream_info_response","stream":"demo_0","seq":1}`) +
		msg(`{"stream":"demo_0_SNAP","seq":7}`) + msg("\r\nMSG x") + "HMSG s 1 12 17\r\nNATS/1.0\r\n\r\nhello\r\n"
	for _, loses := range []bool{false, true} {
		a := new(ackLoser)
		a.loses.Store(loses)
		var out strings.Builder
		want := ack + rest + ack
		if loses {
			want = rest
		}
		if err := a.pass(&out, bufio.NewReader(strings.NewReader(ack+rest+ack))); err != io.EOF || out.String() != want {
			t.Errorf("loses %v: %v, %q, want %q", loses, err, out.String(), want)
		}
	}
}
