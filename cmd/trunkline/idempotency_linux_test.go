package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"trunkline/codec/wire"
	"trunkline/fuzz/rounds"
	"trunkline/handlers/ipc/ipcclient"
)

// keyedLoad is clients that add to counters of their own. They repeat each request with its key, at
// one node after the other, until they have its answer.
type keyedLoad struct {
	rig  *clusterRig
	acks []atomic.Int64 // by client
	stop context.CancelFunc
	wg   sync.WaitGroup
}

func newKeyedLoad(r *clusterRig, clients int) *keyedLoad {
	l := &keyedLoad{rig: r, acks: make([]atomic.Int64, clients)}
	ctx, cancel := context.WithCancel(r.t.Context())
	l.stop = cancel
	for w := range clients {
		l.wg.Go(func() { l.work(ctx, w) })
	}
	return l
}

// keyedClient is one of them.
type keyedClient struct {
	clusterClient
	next int // the node to try after this one
}

// call makes a request until it has an answer. false: the load ends, or the answer is an error.
func (c *keyedClient) call(ctx context.Context, key string, request func(context.Context, *ipcclient.Conn) error) bool {
	r := c.node.rig
	for ctx.Err() == nil {
		_, err := c.do(func(ctx context.Context, conn *ipcclient.Conn) error {
			return request(ipcclient.WithIdempotencyKey(ctx, key), conn)
		})
		var said *ipcclient.Error
		if err == nil {
			return true
		}
		if errors.As(err, &said) && !said.Retryable && said.Code != wire.Unavailable {
			r.t.Errorf("node %s refuses a repetition: %v", c.node.id, err)
			return false
		}
		c.close()
		c.next++
		c.node = r.nodes[c.next%len(r.nodes)]
	}
	return false
}

// work is one client. The answer to a request is the number of requests so far, however often it
// was sent; that to an old one is what it was.
func (l *keyedLoad) work(ctx context.Context, w int) {
	c := &keyedClient{clusterClient: clusterClient{node: l.rig.nodes[w%len(l.rig.nodes)]}, next: w}
	defer c.close()
	pid := fmt.Sprint("worker", w)
	if !c.call(ctx, uuid.NewString(), func(ctx context.Context, conn *ipcclient.Conn) error {
		_, err := conn.CreateProcess(ctx, ipcclient.CreateProcess{PID: pid, UserID: pid})
		return err
	}) {
		return
	}
	var keys []string
	add := func(n int) bool {
		var usage ipcclient.Usage
		if !c.call(ctx, keys[n-1], func(ctx context.Context, conn *ipcclient.Conn) (err error) {
			usage, err = conn.RecordUsage(ctx, ipcclient.RecordUsage{PID: pid, LLMCalls: 1})
			return err
		}) {
			return false
		}
		if usage.LLMCalls != int64(n) {
			l.rig.t.Errorf("request %d of %s has the answer %d", n, pid, usage.LLMCalls)
		}
		return usage.LLMCalls == int64(n)
	}
	for n := 1; ; n++ {
		keys = append(keys, uuid.NewString())
		if !add(n) || !add(n/2+1) {
			return
		}
		l.acks[w].Add(1)
	}
}

// more waits until each client has had some more answers.
func (l *keyedLoad) more(n int64) {
	l.rig.t.Helper()
	var want []int64
	for w := range l.acks {
		want = append(want, l.acks[w].Load()+n)
	}
	l.rig.until("all clients go on", func() bool {
		for w := range l.acks {
			if l.acks[w].Load() < want[w] {
				return l.rig.t.Failed() // one of them has ended
			}
		}
		return true
	})
}

func (l *keyedLoad) end() {
	l.stop()
	l.wg.Wait()
}

// TestIdempotencyKeysOutliveKills: a server is killed again and again while its clients work, and
// each request takes effect once.
func TestIdempotencyKeysOutliveKills(t *testing.T) {
	besideOthers(t)
	r := makeClusterRig(t, 1, t.TempDir, nil)
	n := r.nodes[0]
	n.settings = nil // no cluster
	n.start()
	r.ready(n)
	l := newKeyedLoad(r, 4)
	defer l.end()
	for range rounds.Pick(2, 4) {
		l.more(30)
		n.kill()
		n.start()
	}
	l.more(30)
}

// TestClusterIdempotencyKeys: owners of partitions die, are stopped and come back, while the
// clients repeat what they have no answer to at other nodes.
func TestClusterIdempotencyKeys(t *testing.T) {
	besideOthers(t)
	const partitions = 3
	r := newClusterRig(t, fmt.Sprint("cluster.partitions=", partitions))
	l := newKeyedLoad(r, 6)
	defer l.end()
	l.more(20)
	for p := range rounds.Pick(2, partitions) {
		at := slices.IndexFunc(r.nodes, func(n *clusterNode) bool { return n.runs() })
		dies := r.byID(r.nodes[at].ownerOf(p))
		if p == 1 {
			dies.terminate()
		} else {
			dies.kill()
		}
		left := r.but(dies)
		r.until("another node owns the partition", func() bool {
			owner := left[0].ownerOf(p)
			return owner != "" && owner != dies.id
		})
		l.more(20)
		dies.start()
		r.ready(r.nodes...)
		l.more(20)
	}
}
