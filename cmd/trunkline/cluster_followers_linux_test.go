package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// follower is a client that follows a thread at one node, and goes on behind the last message
// whenever its stream ends.
type follower struct {
	rig    *threadRig
	node   *clusterNode
	thread string
	open   func(ctx context.Context, f *follower) error // runs one stream until it ends

	mu    sync.Mutex
	last  uint64
	known map[uint64]string // identifiers by seq
	wrong string
	ends  int
}

// take notes a message of the stream.
func (f *follower) take(m threadMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.Seq != f.last+1 && f.wrong == "" {
		f.wrong = fmt.Sprintf("message %d after %d at node %s", m.Seq, f.last, f.node.id)
	}
	f.last = m.Seq
	f.known[m.Seq] = m.ID
}

func (f *follower) at() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		_ = f.open(ctx, f)
		f.mu.Lock()
		f.ends++
		f.mu.Unlock()
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// followEvents follows over server-sent events.
func followEvents(ctx context.Context, f *follower) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.node.addr("threads http")+"/v1/stream?thread_id="+f.thread, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+f.rig.bearer)
	req.Header.Set("Last-Event-ID", fmt.Sprint(f.at()))
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	for in := bufio.NewScanner(res.Body); in.Scan(); {
		data, ok := strings.CutPrefix(in.Text(), "data: ")
		var e struct{ Message *threadMessage }
		if ok && json.Unmarshal([]byte(data), &e) == nil && e.Message != nil {
			f.take(*e.Message)
		}
	}
	return nil
}

// followLines follows over a subscription.
func followLines(ctx context.Context, f *follower) error {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", f.node.addr("threads lines"))
	if err != nil {
		return err
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { _ = nc.Close() })()
	fmt.Fprintf(nc, `{"id":1,"method":"auth","params":{"protocol":"threads/1","token":%q}}`+"\n", f.rig.bearer)
	fmt.Fprintf(nc, `{"id":2,"method":"subscribe","params":{"thread_id":%q,"since_seq":%d}}`+"\n", f.thread, f.at())
	for in := bufio.NewScanner(nc); in.Scan(); {
		var e struct {
			Subscription int
			Message      *threadMessage
		}
		if json.Unmarshal(in.Bytes(), &e) == nil && e.Message != nil {
			f.take(*e.Message)
		}
	}
	return nil
}

// followWaits follows with calls that wait.
func followWaits(_ context.Context, f *follower) error {
	var page struct{ Messages []threadMessage }
	err := f.rig.ask(f.node, "/v1/read_messages", fmt.Sprintf(`{"thread_id":%q,"since_seq":%d,"wait_ms":1000}`, f.thread, f.at()), &page)
	for _, m := range page.Messages {
		f.take(m)
	}
	return err
}

// TestClusterFollowers: while nodes are killed and started again, clients at every node follow
// threads of several partitions by streams, subscriptions and calls that wait. Each of them has
// every message once and in order.
func TestClusterFollowers(t *testing.T) {
	longBesideOthers(t)
	r := newThreadRig(t, "cluster.partitions=3")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var all []*follower
	var books []*threadBook
	var loads []*clusterLoad
	for i, workspace := range []string{"wk", "wl", "wm"} {
		other := r.as(workspace)
		book := newThreadBook(other, 1)
		books = append(books, book)
		for k, open := range []func(context.Context, *follower) error{followEvents, followLines, followWaits} {
			f := &follower{rig: other, node: r.nodes[(i+k)%len(r.nodes)], thread: book.threads[0], open: open, known: map[uint64]string{}}
			all = append(all, f)
			running.Go(func() { f.run(ctx) })
		}
		load := book.load(1)
		defer load.end()
		load.more(30)
		loads = append(loads, load)
	}
	loads[0].killNodes()
	for _, load := range loads {
		load.more(30)
		load.end()
	}
	for i, book := range books {
		book.check(r.nodes[i])
		last := uint64(0)
		for at := range book.read {
			var thread, seq uint64
			if _, err := fmt.Sscanf(at, "%d/%d", &thread, &seq); err == nil {
				last = max(last, seq)
			}
		}
		for _, f := range all[3*i : 3*i+3] {
			r.until(fmt.Sprintf("a follower at node %s has %d messages", f.node.id, last), func() bool { return f.at() >= last })
			f.mu.Lock()
			if f.wrong != "" {
				t.Error(f.wrong)
			}
			for seq, id := range f.known {
				if m := book.read[fmt.Sprint("0/", seq)]; m.ID != id {
					t.Errorf("message %d is %s at a follower, %s to a reader", seq, id, m.ID)
				}
			}
			t.Logf("a follower has %d messages by %d streams", f.last, f.ends)
			f.mu.Unlock()
		}
	}
}
