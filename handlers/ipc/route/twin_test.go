package route

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"trunkline/engine/connection"
	"trunkline/engine/runtime"
	"trunkline/handlers/ipc"
)

// twin is one client of one server, and of three partitions. Both are asked the same.
type twin struct {
	direct struct {
		port *connection.Port
		s    connection.Session
		out  []byte
	}
	routed  *board
	queries [2]string // the last query_id that each got as a handler
}

// twins are the clients of a program.
type twins struct {
	t    *rapid.T
	one  *ipc.Service
	c    *cluster
	list [2]*twin
}

func (w *twins) connect(i int) {
	p := &twin{routed: w.c.connect()}
	p.direct.port = w.c.port()
	p.direct.s = w.one.Open(p.direct.port)
	w.list[i] = p
}

func (p *twin) close() {
	p.direct.s.Closed()
	p.routed.close()
}

// settle moves everything on both sides, and returns what each of them got.
func (w *twins) settle() (frames [2][2][]string) {
	for moved := true; moved; {
		moved = false
		for _, p := range w.list {
			n := len(p.direct.out)
			p.direct.port.Rearm()
			p.direct.out, _ = p.direct.s.Pump(p.direct.out, connection.DefaultChunkBytes, w.c.now)
			moved = moved || len(p.direct.out) > n || p.routed.client()
			for partition := range p.routed.wires {
				moved = p.routed.leg(partition, 0) || moved
			}
		}
	}
	for i, p := range w.list {
		frames[0][i] = p.take(0, &board{c: w.c, out: p.direct.out})
		p.direct.out = nil
		frames[1][i] = p.take(1, p.routed)
	}
	return frames
}

var (
	madeName = regexp.MustCompile(`ipc-(sub|hnd)-[0-9a-f]{32}`)
	queryID  = regexp.MustCompile(`"query_id":"([^"]*)"`)
)

// take returns the frames in an order that does not depend on when streams and queries are
// answered, without the names that servers make.
func (p *twin) take(side int, b *board) (list []string) {
	for f := b.next(); f != ""; f = b.next() {
		if m := queryID.FindStringSubmatch(f); m != nil {
			p.queries[side] = m[1]
		}
		list = append(list, queryID.ReplaceAllString(madeName.ReplaceAllString(f, "ipc-made"), `"query_id":"…"`))
	}
	slices.Sort(list)
	return list
}

// ask has one of the clients ask both sides.
func (w *twins) ask(i int, id, method, body string) {
	service, name, _ := strings.Cut(method, ".")
	p := w.list[i]
	r := request(id, service, name, strings.ReplaceAll(body, "$Q", p.queries[0]))
	_, p.direct.out, _ = p.direct.s.Feed(r, p.direct.out, w.c.now)
	p.routed.in = append(p.routed.in, request(id, service, name, strings.ReplaceAll(body, "$Q", p.queries[1]))...)
	got := w.settle()
	if fmt.Sprint(got[0]) != fmt.Sprint(got[1]) {
		w.t.Fatalf("client %d, %s %s %s:\nserver %q\nrouter %q", i, id, method, body, got[0], got[1])
	}
}

// some draws one of a list, which may be empty text.
func (w *twins) some(label string, list ...string) string {
	return rapid.SampledFrom(list).Draw(w.t, label)
}

func (w *twins) types() string {
	return w.some("types", `["a"]`, `["b","c"]`, `["a","b","c"]`, `["d"]`, `["a","a"]`)
}

// step draws a request about the bus.
func (w *twins) step() {
	i := rapid.IntRange(0, 1).Draw(w.t, "client")
	typ := w.some("type", "a", "b", "c", "d")
	stream := w.some("stream", "s1", "s2", "s3", "s4", "q1")
	switch w.some("method", "Subscribe", "Command", "Query handler", "Unsubscribe", "Publish", "Send", "Query", "Reply", "Status", "Close") {
	case "Subscribe":
		w.ask(i, stream, "commbus.Subscribe", `{"event_types":`+w.types()+w.some("name", "", `,"subscriber_id":"v"`, `,"subscriber_id":"w"`)+
			w.some("ack", "", `,"ack":true`, `,"ack":false`)+w.some("patterns", "", `,"event_patterns":["a.*","*"]`)+`}`)
	case "Command":
		w.ask(i, stream, "commbus.RegisterCommandHandler", `{"command_types":`+w.types()+w.some("name", "", `,"handler_id":"h"`)+`}`)
	case "Query handler":
		w.ask(i, stream, "commbus.RegisterQueryHandler", `{"query_types":`+w.types()+`}`)
	case "Unsubscribe":
		w.ask(i, "u", "commbus.Unsubscribe", w.some("what", `{"stream_id":"`+stream+`"}`, `{"stream_id":"`+stream+`"}`, `{"subscriber_id":"w"}`, `{}`))
	case "Publish":
		w.ask(i, "p", "commbus.Publish", `{"event_type":"`+typ+`","payload":"1"}`)
	case "Send":
		w.ask(i, "c", "commbus.Send", `{"command_type":"`+typ+`"}`)
	case "Query":
		w.ask(i, w.some("id", "q1", "q2", "s1"), "commbus.Query", `{"query_type":"`+typ+`","timeout_ms":30000}`)
	case "Reply":
		w.ask(i, "r", "commbus.Reply", `{"query_id":"x$Q","result":"2"}`)
		w.ask(i, "r", "commbus.Reply", `{"query_id":"`+w.some("which", "$Q", "ghost")+`","result":"1"}`)
	case "Status":
		w.ask(i, "n", "kernel.GetSystemStatus", `{}`)
	case "Close":
		w.list[i].close()
		w.connect(i)
		w.settle()
	}
}

// TestTwin: streams, handlers and queries over three partitions look as those of one server.
func TestTwin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(rt, "streams")
		w := &twins{
			t: rt,
			c: newCluster(
				quiet{t},
				3,
				func(_ *Config, core *ipc.Config, _ *runtime.Config) { core.MaxStreamsPerConnection = limit },
			),
		}
		defer w.c.close()
		w.one = ipc.NewService(
			ipc.Config{MaxStreamsPerConnection: limit},
			runtime.New(runtime.Config{Now: func() connection.Instant { return w.c.now }}),
		)
		defer w.one.Runtime().Close()
		w.connect(0)
		w.connect(1)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			w.step()
		}
		for _, p := range w.list {
			if p.routed.closed {
				rt.Fatal("a client lost its connection")
			}
			p.close()
		}
		for i, svc := range w.c.cores {
			if n := svc.Stats().Bus.ActiveSubscribers; n != 0 {
				rt.Errorf("partition %d has %d subscribers at the end", i, n)
			}
		}
	})
}
