package route

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
	"trunkline/engine/cluster/placement"
	"trunkline/engine/cluster/upstream"
	"trunkline/engine/connection"
	"trunkline/engine/runtime"
	"trunkline/fuzz/kit"
	"trunkline/handlers/ipc"
)

func TestMain(m *testing.M) { kit.Leaks(m) }

// cluster is the services of some partitions, with a clock of their own.
type cluster struct {
	tb     testing.TB
	router *Router
	cores  []*ipc.Service
	now    connection.Instant
	ports  uint64
}

// newCluster makes a cluster of memory services; change may be nil.
func newCluster(tb testing.TB, partitions int, change func(*Config, *ipc.Config, *runtime.Config)) *cluster {
	c := &cluster{tb: tb, now: connection.Instant{Mono: 1e15, Wall: 1700000000000}}
	cfg := Config{
		Config: upstream.Config{
			Partitions: partitions,
			Dial: func(context.Context, int, string) (net.Conn, context.Context, error) {
				return nil, nil, errors.New("the boards of the test connect legs")
			},
		},
	}
	var core ipc.Config
	state := runtime.Config{Partitions: partitions, Now: func() connection.Instant { return c.now }}
	state.DequeueLease = -1
	if change != nil {
		change(&cfg, &core, &state)
	}
	for i := range partitions {
		state.Partition = i
		c.cores = append(c.cores, ipc.NewService(core, runtime.New(state)))
	}
	r, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	c.router = r
	tb.Cleanup(c.close)
	return c
}

func (c *cluster) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := c.router.Shutdown(ctx); err != nil {
		c.tb.Error(err)
	}
	for _, svc := range c.cores {
		svc.Runtime().Close()
	}
}

func (c *cluster) port() *connection.Port {
	c.ports++
	return connection.NewPort(c.ports, "test")
}

// home returns a text of that partition.
func (c *cluster) home(kind placement.Kind, partition int, name string) string {
	for i := 0; ; i++ {
		if text := fmt.Sprint(name, i); int(c.router.owners.Partition(kind, text)) == partition {
			return text
		}
	}
}

// board moves the bytes of one client by hand, so that a test decides who comes next.
type board struct {
	c       *cluster
	s       *session
	port    *connection.Port
	in, out []byte
	verdict connection.Verdict
	closed  bool
	wires   []*cable
}

// cable is the connection below a leg.
type cable struct {
	port          *connection.Port // of the service's side
	core          connection.Session
	toCore, toLeg []byte
}

func (c *cluster) connect() *board {
	b := &board{c: c, port: c.port(), wires: make([]*cable, len(c.cores))}
	b.s = c.router.open(b.port).(*session)
	for i := range b.s.legs {
		b.s.legs[i].running = true // the board dials
	}
	return b
}

// client moves the client's side, and reports whether anything moved.
func (b *board) client() (moved bool) {
	if b.closed {
		return false
	}
	b.port.Rearm()
	before := len(b.out)
	b.out, _ = b.s.Pump(b.out, connection.DefaultChunkBytes, b.c.now)
	moved = len(b.out) > before
	if len(b.in) > 0 {
		used, _, v := b.s.Feed(b.in, nil, b.c.now)
		b.verdict = v
		b.in = b.in[used:]
		moved = moved || used > 0
	}
	if b.s.Load().Over || b.verdict == connection.Close {
		b.close()
		return true
	}
	return moved
}

// close is the end of the client's connection.
func (b *board) close() {
	if b.closed {
		return
	}
	b.closed = true
	b.s.Closed()
	for i, w := range b.wires {
		if w != nil {
			b.unplug(i)
		}
	}
}

// unplug is the end of a leg's connection.
func (b *board) unplug(partition int) {
	w, l := b.wires[partition], &b.s.legs[partition]
	w.core.Closed()
	l.Closed()
	b.wires[partition] = nil
	l.ended(nil)
	l.running = true
}

// leg moves the bytes of one leg, and reports whether anything moved. most bounds what the leg is
// fed of the service's bytes; 0: there is no bound.
func (b *board) leg(partition, most int) (moved bool) {
	l, w := &b.s.legs[partition], b.wires[partition]
	if b.closed {
		return false
	}
	if w == nil {
		if l.queued == 0 {
			return false
		}
		w = &cable{port: b.c.port()}
		w.core = b.c.cores[partition].Open(w.port)
		b.wires[partition] = w
		l.connected(nil)
		l.open(b.c.port())
	}
	if l.over {
		b.unplug(partition)
		return true
	}
	l.port.Rearm()
	n := len(w.toCore)
	w.toCore, _ = l.Pump(w.toCore, connection.DefaultChunkBytes, b.c.now)
	moved = len(w.toCore) > n
	used, toLeg, _ := w.core.Feed(w.toCore, w.toLeg, b.c.now)
	w.toCore, moved = w.toCore[used:], moved || used > 0
	w.port.Rearm()
	n = len(w.toLeg)
	w.toLeg, _ = w.core.Pump(toLeg, connection.DefaultChunkBytes, b.c.now)
	moved = moved || len(w.toLeg) > n
	lent := w.toLeg
	if most > 0 && len(lent) > most {
		lent = lent[:most]
	}
	used, _, _ = l.Feed(bytes.Clone(lent), nil, b.c.now)
	w.toLeg = w.toLeg[used:]
	return moved || used > 0
}

// settle moves everything until nothing moves.
func (b *board) settle() {
	for moved := true; moved; {
		moved = b.client()
		for i := range b.wires {
			moved = b.leg(i, 0) || moved
		}
	}
	b.client()
}

// await settles until all requests are answered: services make long answers on goroutines.
func (b *board) await() {
	b.c.tb.Helper()
	for range 10_000 {
		if b.settle(); b.closed || b.s.window.len() == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	b.c.tb.Fatal("requests have no answer")
}

func (b *board) send(f ...[]byte) *board {
	b.in = append(b.in, bytes.Join(f, nil)...)
	b.settle()
	return b
}

// request encodes a request; body is JSON.
func request(id, service, method, body string) []byte {
	value, err := transcode.EncodeJSON([]byte(body))
	if err != nil {
		panic(err)
	}
	return frame.Append(nil, frame.Request, mpack.AppendRequest(nil, id, service, method, string(value)), nil)
}

// next returns the next frame as "type JSON", "" when there is none.
func (b *board) next() string {
	b.c.tb.Helper()
	typ, payload, n := frame.Split(b.out, 1<<30)
	if n <= 0 {
		return ""
	}
	b.out = b.out[n:]
	var text bytes.Buffer
	if rest, err := msgp.UnmarshalAsJSON(&text, payload); err != nil || len(rest) > 0 {
		b.c.tb.Fatalf("cannot decode frame %x: %v", payload, err)
	}
	return fmt.Sprintf("%02X %s", byte(typ), text.String())
}

func (b *board) want(frames ...string) {
	b.c.tb.Helper()
	for _, w := range frames {
		if got := b.next(); got != w {
			b.c.tb.Errorf("got  %s\nwant %s", got, w)
		}
	}
	if rest := b.next(); rest != "" {
		b.c.tb.Errorf("one frame too many: %s", rest)
	}
}

// call sends a request and returns the body of its reply, or its error.
func (b *board) call(service, method, body string) map[string]any {
	b.c.tb.Helper()
	b.send(request("call", service, method, body))
	got := b.next()
	var reply struct{ Body, Error map[string]any }
	if len(got) < 3 {
		b.c.tb.Fatalf("%s.%s has no answer", service, method)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(got[3:])))
	d.UseNumber()
	if err := d.Decode(&reply); err != nil {
		b.c.tb.Fatal(err)
	}
	if reply.Error != nil {
		return reply.Error
	}
	return reply.Body
}

// create makes a process at a partition and returns its pid.
func (b *board) create(partition int, name, more string) string {
	b.c.tb.Helper()
	pid := b.c.home(placement.Process, partition, name)
	if got := b.call("kernel", "CreateProcess", `{"pid":"`+pid+`","user_id":"`+pid+`"`+more+`}`); got["pid"] != pid {
		b.c.tb.Fatalf("cannot create %s: %v", pid, got)
	}
	return pid
}
