package crashtest

import (
	"fmt"
	"strconv"
	"time"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
	"trunkline/engine/connection"
	"trunkline/engine/journal"
)

// reply is one that has left its connection.
type reply struct {
	id   int
	ok   bool
	body map[string]any // of the reply or, not ok, of its error
	// safe and reported are how far the journal was durable and how far it reached, read after the
	// reply had left: a reply that waits reports nothing after safe, and no reply of anything
	// after reported.
	safe, reported journal.Index
}

func (r reply) number(key string) int64 {
	switch v := r.body[key].(type) {
	case int64:
		return v
	case uint64:
		return int64(v)
	}
	return -1
}

func (r reply) str(key string) string {
	s, _ := r.body[key].(string)
	return s
}

// String is the reply as one text that two equal replies share.
func (r reply) String() string { return fmt.Sprint(r.ok, " ", r.body) }

// peer is one connection, of one goroutine.
type peer struct {
	srv  *server
	port *connection.Port
	s    connection.Session
	wake chan struct{}
	now  func() connection.Instant
	in   []byte // not yet taken
	out  []byte // has left, not yet read as replies
	sent int
	got  int
}

// Wake implements connection.Owner.
func (p *peer) Wake(*connection.Port) {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// connect opens a connection.
func (s *server) connect() *peer {
	p := &peer{srv: s, port: connection.NewPort(s.ports.Add(1), "test"), wake: make(chan struct{}, 1), now: connection.Now}
	p.s = s.svc.Open(p.port)
	p.port.SetOwner(p)
	return p
}

// ask puts a request behind the others. Its id is the number of requests before it.
func (p *peer) ask(service, method, body string) {
	p.in = append(p.in, request(p.sent, service, method, body)...)
	p.sent++
}

// request is a frame whose body is given as JSON.
func request(id int, service, method, body string) []byte {
	b, err := transcode.EncodeJSON([]byte(body))
	if err != nil {
		panic(fmt.Sprintf("cannot encode %s: %v", body, err))
	}
	return frame.Append(nil, frame.Request, mpack.AppendRequest(nil, strconv.Itoa(id), service, method, string(b)), nil)
}

// step feeds what the session takes now, pumps it if it was woken, as every owner does when it
// comes round, and returns the replies that left. blocked states that it took nothing and waits for
// a wake.
func (p *peer) step() (replies []reply, blocked bool, err error) {
	for {
		used, out, v := p.s.Feed(p.in, p.out, p.now())
		p.in, p.out = p.in[used:], out
		more, err := p.read()
		if replies = append(replies, more...); err != nil || v == connection.Close {
			return replies, false, fmt.Errorf("verdict %d: %v", v, err)
		}
		if v == connection.Yield {
			continue
		}
		select {
		case <-p.wake:
			more, err := p.pump()
			if replies = append(replies, more...); err != nil {
				return replies, false, err
			}
			if v == connection.Blocked {
				continue
			}
		default:
		}
		return replies, v == connection.Blocked, nil
	}
}

// pump returns the replies that came from elsewhere, the journal above all.
func (p *peer) pump() (replies []reply, err error) {
	for more := true; more; {
		p.port.Rearm()
		p.out, more = p.s.Pump(p.out, connection.DefaultChunkBytes, p.now())
	}
	return p.read()
}

// read takes the replies out of what has left, and checks that each comes once and in order.
func (p *peer) read() (replies []reply, err error) {
	safe, reported := p.srv.log.Durable(), p.srv.log.Appended()
	for {
		typ, payload, n := frame.Split(p.out, 1<<30)
		if n <= 0 {
			return replies, nil
		}
		p.out = p.out[n:]
		v, _, err := msgp.ReadIntfBytes(payload)
		m, _ := v.(map[string]any)
		id, _ := m["id"].(string)
		if err != nil || id != strconv.Itoa(p.got) {
			return replies, fmt.Errorf("a reply %v where that to %d was due: %v", v, p.got, err)
		}
		r := reply{id: p.got, ok: typ == frame.Response, safe: safe, reported: reported}
		if r.body, _ = m["body"].(map[string]any); !r.ok {
			r.body, _ = m["error"].(map[string]any)
		}
		p.got++
		replies = append(replies, r)
	}
}

// flush sends all that was asked and waits for every reply. It ends early when the server dies.
func (p *peer) flush() (replies []reply, err error) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for first := true; p.got < p.sent; first = false {
		if len(p.in) > 0 || first {
			more, _, err := p.step()
			if replies = append(replies, more...); err != nil {
				return replies, err
			}
		}
		if p.got == p.sent {
			break
		}
		select {
		case <-p.wake:
		case <-p.srv.dead:
			return replies, fmt.Errorf("the server is dead: %w", p.srv.why())
		case <-deadline.C:
			return replies, fmt.Errorf("%d of %d replies came, durable %d of %d", p.got, p.sent, p.srv.log.Durable(), p.srv.log.Appended())
		}
		more, err := p.pump()
		if replies = append(replies, more...); err != nil {
			return replies, err
		}
	}
	return replies, nil
}

// call sends one request and returns its reply.
func (p *peer) call(t tester, service, method, body string) reply {
	t.Helper()
	p.ask(service, method, body)
	replies, err := p.flush()
	if err != nil || len(replies) != 1 {
		t.Fatalf("%s: %d replies, %v", method, len(replies), err)
	}
	return replies[0]
}

// must is call for what is not refused.
func (p *peer) must(t tester, service, method, body string) reply {
	t.Helper()
	r := p.call(t, service, method, body)
	if !r.ok {
		t.Fatalf("%s %s: %v", method, body, r.body)
	}
	return r
}
