package ipc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/engine/connection"
	"trunkline/engine/runtime"
)

// rig is a service with a clock of its own and sessions that are fed directly, without sockets:
// what goes in and comes out are the bytes of the wire.
type rig struct {
	t   testing.TB
	svc *Service
	now connection.Instant
}

func newRig(t testing.TB, limits ...limits) *rig {
	r := &rig{t: t, now: connection.Instant{Mono: 1e15, Wall: 1700000000000}}
	r.svc = newService(
		append(limits, func(_ *Config, s *runtime.Config) { s.Now = func() connection.Instant { return r.now } })...)
	t.Cleanup(r.svc.bus.Close)
	return r
}

// limits changes the settings of a rig; nil: nothing.
type limits = func(*Config, *runtime.Config)

// newService returns a service and its runtime with other limits than the defaults.
func newService(limits ...limits) *Service {
	var c Config
	var r runtime.Config
	for _, set := range limits {
		if set != nil {
			set(&c, &r)
		}
	}
	return NewService(c, runtime.New(r))
}

// peer is one connection of a rig.
type peer struct {
	rig  *rig
	port *connection.Port
	s    connection.Session
	out  []byte // not yet read by the test
	in   []byte // not yet taken by the session
}

func (r *rig) connect() *peer {
	p := &peer{rig: r, port: connection.NewPort(1, "test")}
	p.s = r.svc.Open(p.port)
	return p
}

// send feeds bytes and pumps until nothing moves any more.
func (p *peer) send(b []byte) connection.Verdict {
	p.in = append(p.in, b...)
	for {
		used, out, v := p.s.Feed(p.in, p.out, p.rig.now)
		p.in, p.out = p.in[used:], out
		p.pump()
		if v != connection.Yield {
			return v
		}
		if used == 0 {
			p.rig.t.Fatal("the session yields without taking anything: nobody reads its output")
		}
	}
}

func (p *peer) pump() {
	for more := true; more; {
		p.port.Rearm()
		p.out, more = p.s.Pump(p.out, connection.DefaultChunkBytes, p.rig.now)
	}
}

// request encodes a request whose body is given as JSON.
func request(id, service, method, body string) []byte {
	payload := mpack.AppendRequest(nil, id, service, method, string(encodeJSON(body)))
	return frame.Append(nil, frame.Request, payload, nil)
}

func encodeJSON(text string) []byte {
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		panic(fmt.Sprintf("cannot decode %s: %v", text, err))
	}
	return appendAny(nil, v)
}

func appendAny(b []byte, v any) []byte {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return mpack.AppendInt(b, i)
		}
		f, _ := v.Float64()
		return mpack.AppendFloat(b, f)
	case []any:
		b = mpack.AppendArray(b, len(v))
		for _, e := range v {
			b = appendAny(b, e)
		}
		return b
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		b = mpack.AppendMap(b, len(v))
		for _, k := range keys {
			b = appendAny(mpack.AppendStr(b, k), v[k])
		}
		return b
	case string:
		return mpack.AppendStr(b, v)
	case bool:
		return mpack.AppendBool(b, v)
	}
	return mpack.AppendNil(b)
}

// next returns the next frame as "type JSON", "" when there is none.
func (p *peer) next() string {
	p.rig.t.Helper()
	typ, payload, n := frame.Split(p.out, 1<<30)
	if n <= 0 {
		return ""
	}
	p.out = p.out[n:]
	var text bytes.Buffer
	if rest, err := msgp.UnmarshalAsJSON(&text, payload); err != nil || len(rest) > 0 {
		p.rig.t.Fatalf("cannot decode frame %x: %v", payload, err)
	}
	return fmt.Sprintf("%02X %s", byte(typ), text.String())
}

// want checks the next frames.
func (p *peer) want(frames ...string) {
	p.rig.t.Helper()
	for _, w := range frames {
		if got := p.next(); got != w {
			p.rig.t.Errorf("got  %s\nwant %s", got, w)
		}
	}
}

// call sends one request and returns the next frame.
func (p *peer) call(id, service, method, body string) string {
	p.rig.t.Helper()
	p.send(request(id, service, method, body))
	return p.next()
}
