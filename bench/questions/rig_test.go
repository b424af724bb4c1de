package questions

import (
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
	"trunkline/engine/connection"
	"trunkline/engine/runtime"
	"trunkline/handlers/ipc"
)

// rig is an endpoint of the kernel protocol without sockets, at a clock that is turned by hand.
type rig struct {
	tb  testing.TB
	svc *ipc.Service
	now connection.Instant
}

func newRig(tb testing.TB, set func(*runtime.Config)) *rig {
	r := &rig{tb: tb, now: connection.Instant{Mono: 1e15, Wall: 1_700_000_000_000}}
	cfg := runtime.Config{Now: func() connection.Instant { return r.now }}
	if set != nil {
		set(&cfg)
	}
	r.svc = ipc.NewService(ipc.Config{}, runtime.New(cfg))
	tb.Cleanup(r.svc.Runtime().Close)
	return r
}

// peer is one connection of a rig: frames go in, reply bytes come out.
type peer struct {
	*rig
	port *connection.Port
	s    connection.Session
	out  []byte // what the last feed or pump gave
}

func (r *rig) connect() *peer {
	p := &peer{rig: r, port: connection.NewPort(1, "test"), out: make([]byte, 0, 64<<10)}
	p.s = r.svc.Open(p.port)
	r.tb.Cleanup(p.s.Closed)
	return p
}

// feed has the session answer the frames of in, as often as it wants to be asked again.
func (p *peer) feed(in []byte) {
	p.out = p.out[:0]
	for len(in) > 0 {
		used, out, v := p.s.Feed(in, p.out, p.now)
		if used == 0 || v > connection.Yield {
			p.tb.Fatalf("the session stops with verdict %d and %d bytes left", v, len(in)-used)
		}
		in, p.out = in[used:], out
	}
}

// pump takes what came from elsewhere.
func (p *peer) pump() {
	p.port.Rearm()
	p.out, _ = p.s.Pump(p.out[:0], connection.DefaultChunkBytes, p.now)
}

// must feeds the frames of in and fails unless each was answered by a RESPONSE that contains want.
func (p *peer) must(in []byte, want string) {
	p.tb.Helper()
	asked := countFrames(p.tb, in)
	p.feed(in)
	if got := countFrames(p.tb, p.out); got != asked {
		p.tb.Fatalf("%d frames for %d requests", got, asked)
	}
	for rest := p.out; len(rest) > 0; {
		typ, payload, n := frame.Split(rest, 64<<20)
		if text := asJSON(p.tb, payload); typ != frame.Response || !strings.Contains(text, want) {
			p.tb.Fatalf("frame of type %#x, wanted a response with %s: %.400s", byte(typ), want, text)
		}
		rest = rest[n:]
	}
}

// call sends one request, which has to be answered by a RESPONSE.
func (p *peer) call(service, method, body string) {
	p.tb.Helper()
	p.must(request(p.tb, service, method, body), "")
}

// lastBody is the body of the only reply, as JSON.
func (p *peer) lastBody() string {
	p.tb.Helper()
	_, payload, _ := frame.Split(p.out, 64<<20)
	var sc mpack.Scanner
	var body [1]mpack.Value
	if _, problem := sc.ParseFields(payload, 0, mpack.Fields("body"), body[:]); problem != mpack.NoProblem || body[0].Kind != mpack.Map {
		p.tb.Fatalf("no body in %s", asJSON(p.tb, payload))
	}
	return asJSON(p.tb, body[0].Data)
}

func countFrames(tb testing.TB, b []byte) (count int) {
	tb.Helper()
	for ; len(b) > 0; count++ {
		_, _, n := frame.Split(b, 64<<20)
		if n <= 0 {
			tb.Fatalf("not a frame: %.40x", b)
		}
		b = b[n:]
	}
	return count
}

func asJSON(tb testing.TB, payload []byte) string {
	tb.Helper()
	var text strings.Builder
	if rest, err := msgp.UnmarshalAsJSON(&text, payload); err != nil || len(rest) > 0 {
		tb.Fatalf("cannot decode %.80x: %v", payload, err)
	}
	return text.String()
}

// request returns the frame of a request whose body is given as JSON.
func request(tb testing.TB, service, method, body string) []byte {
	tb.Helper()
	payload := mpack.AppendRequest(nil, []byte("00000001"), []byte(service), []byte(method), encode(tb, body))
	return frame.Append(nil, frame.Request, payload, nil)
}

// encode returns a JSON text as MessagePack.
func encode(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := transcode.EncodeJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
