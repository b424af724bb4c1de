package loadgen

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"trunkline/codec/jsonx"
)

// Watch has the threads of a run followed by subscriptions. For ProtocolThreads only.
type Watch struct {
	// Subscriptions is how many there are, PerConn how many each of their connections has at most.
	Subscriptions, PerConn int
}

// Watched is what the subscriptions of a run have received.
type Watched struct {
	Messages int64
	// Latency is from the time of a message, which has milliseconds, to its arrival.
	Latency *hdrhistogram.Histogram
}

// watcher is the subscriptions of a run.
type watcher struct {
	conns []net.Conn
	done  sync.WaitGroup
	mu    sync.Mutex
	total Watched
}

// watch subscribes to the threads of the run, to each as often as to the others; nil where nothing
// is watched.
func (g *generator) watch(ctx context.Context) (*watcher, error) {
	p := &g.plan.Watch
	if p.Subscriptions == 0 {
		return nil, nil
	}
	if len(g.threads) == 0 {
		return nil, fmt.Errorf("%w: no request names {{thread}}, so there is none to watch", ErrPrepare)
	}
	w := &watcher{total: Watched{Latency: NewHistogram()}}
	for first := 0; first < p.Subscriptions; first += p.PerConn {
		if err := g.subscribe(ctx, w, first, min(first+p.PerConn, p.Subscriptions)); err != nil {
			w.stop()
			return nil, err
		}
	}
	return w, nil
}

// subscribe opens a connection with some of the subscriptions.
func (g *generator) subscribe(ctx context.Context, w *watcher, first, end int) error {
	nc, _, err := g.connect(ctx)
	if err != nil {
		return fmt.Errorf("%w to %s: %w", ErrConnect, g.plan.Target.Addr, err)
	}
	w.conns = append(w.conns, nc)
	in := bufio.NewReaderSize(nc, keptBuffer)
	var out []byte
	for i := first; i < end; i++ {
		line, err := encodeCall("subscribe", jsonx.Build(nil).Text("thread_id", g.threads[i%len(g.threads)]).End())
		if err != nil {
			return fmt.Errorf("%w: %w", ErrPrepare, err)
		}
		out = append(out, line...)
	}
	if _, err := nc.Write(out); err != nil {
		return fmt.Errorf("%w: cannot subscribe: %w", ErrPrepare, err)
	}
	for range end - first {
		if a, err := nextAnswer(nc, in); err != nil || !a.OK {
			return fmt.Errorf("%w: subscribe: %s: %w", ErrPrepare, a.Error.Code, errors.Join(err, ctx.Err()))
		}
	}
	_ = nc.SetReadDeadline(time.Time{})
	w.done.Go(func() { w.read(in) })
	return nil
}

var createdAt = []byte(`"created_at":"`)

// read counts what one connection receives until it is closed.
func (w *watcher) read(in *bufio.Reader) {
	got := Watched{Latency: NewHistogram()}
	for {
		line, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		i := bytes.LastIndex(line, createdAt)
		if i < 0 || !bytes.HasPrefix(line, []byte(`{"subscription":`)) {
			continue
		}
		got.Messages++
		text, _, _ := bytes.Cut(line[i+len(createdAt):], []byte{'"'})
		if at, err := time.Parse(time.RFC3339, string(text)); err == nil {
			_ = got.Latency.RecordValue(min(max(int64(time.Since(at)), LowestLatency), HighestLatency))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total.Messages += got.Messages
	w.total.Latency.Merge(got.Latency)
}

// settle is how long messages may be under way at the end of a run.
const settle = 200 * time.Millisecond

// stop ends the subscriptions and returns what they have received; nil where there are none.
func (w *watcher) stop() *Watched {
	if w == nil {
		return nil
	}
	for _, nc := range w.conns {
		_ = nc.SetReadDeadline(time.Now().Add(settle))
	}
	w.done.Wait()
	for _, nc := range w.conns {
		_ = nc.Close()
	}
	return &w.total
}

// checkWatch refuses subscriptions that cannot be.
func (p *Plan) checkWatch() error {
	switch w := p.Watch; {
	case w.Subscriptions == 0:
		return nil
	case p.Target.Protocol != ProtocolThreads:
		return errors.New("cannot watch another protocol than threads")
	case w.Subscriptions < 0 || w.PerConn < 1 || w.Subscriptions > maxConns*w.PerConn:
		return fmt.Errorf("cannot have %d watchers, %d for each connection: want at least 1, and at most %d connections", w.Subscriptions, w.PerConn, maxConns)
	}
	return nil
}
