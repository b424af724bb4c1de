package fuzz

import (
	"encoding/binary"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

const maxPeers = 5

// waits are the steps of the clock in milliseconds: around the rate windows, leases, retention
// times and query timeouts in use.
var waits = []int64{1, 2, 250, 999, 1000, 3000, 5000, 10000, 30000, 50000, 3600000}

// program is a run of one program against a service and the model.
type program struct {
	speaker
	*house
	drained bool
	spoken  []byte // the last frame any client wrote
}

// runProgram executes a program inside a bubble, where the deadlines of queries pass with the clock
// of the program.
func runProgram(t *testing.T, code []byte) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{speaker: speaker{source: source{code}}}
		p.speaker.set, p.topic = p.settings(), p.n(len(topics))
		p.house = newHouse(t, p.speaker.set)
		p.house.told = p.listen
		p.house.clock = func(ms int64) {
			time.Sleep(time.Duration(ms) * time.Millisecond)
			synctest.Wait()
		}
		defer p.svc.Runtime().Close()
		p.house.open()
		for !p.done() {
			p.step()
		}
		p.finish()
	})
}

// listen keeps the names that the server makes up.
func (p *program) listen(f received) {
	v, _ := f.payload.get("body")
	body, _ := v.(object)
	if n, ok := body.get("next_cursor"); ok {
		p.cursors = append(p.cursors, n.(int64))
	}
	if id, ok := body.get("query_id"); ok {
		p.speaker.queries = append(p.speaker.queries, id.(string))
	}
	identity, _ := body.get("identity")
	nested, _ := identity.(object)
	for _, o := range []object{body, nested} {
		if id, _ := o.get("envelope_id"); isText(id) {
			p.speaker.stored = append(p.speaker.stored, id.(string))
		}
	}
}

func (p *program) step() {
	op := p.byte()
	if len(p.peers) == 0 {
		p.house.open()
	}
	who := p.peers[int(op>>5)%len(p.peers)]
	switch op % 32 {
	case 0:
		if len(p.peers) < maxPeers {
			p.house.open()
		}
	case 1, 2, 3:
		p.rarely(op%32, who)
	case 4, 5:
		p.advance(pick(&p.source, waits...))
	case 6:
		p.svc.Runtime().Sweep()
		p.model.sweep()
	case 8, 9:
		who.pump()
	case 10, 11:
		who.drain()
	case 12:
		for _, who := range slices.Clone(p.peers) { // some may end meanwhile
			who.drain()
		}
	case 13:
		p.repeat(who)
	case 14, 15, 16, 17: // pipelined: delivered with what comes later
		p.write(who)
	case 20, 21:
		p.answer()
	case 18, 19:
		p.write(who)
		who.deliverSome(p.upTo(len(who.wire)))
	default:
		p.write(who)
		who.deliverSome(len(who.wire))
	}
}

// rarely does what ends conversations.
func (p *program) rarely(what byte, who *peer) {
	switch choice := p.byte(); {
	case what == 1 && choice%4 == 0:
		p.leave(who)
	case what == 2 && choice%8 == 0:
		who.close()
	case what == 3 && choice%8 == 0:
		p.badLength(who)
	case what == 3 && choice == 255:
		p.shutdown()
	}
}

// write has the client write one frame, unless it has half-closed.
func (p *program) write(who *peer) {
	if !who.conn.eof {
		p.spoken = p.frame()
		who.wire = append(who.wire, p.spoken...)
	}
}

// repeat has the client write its last frame once more, several times: bursts fill windows, buffers
// and queues.
func (p *program) repeat(who *peer) {
	for n := p.n(24); n >= 0 && !who.conn.eof; n-- {
		who.wire = append(who.wire, p.spoken...)
	}
	who.deliverSome(len(who.wire))
}

// answer has a handler reply to a query it was given.
func (p *program) answer() {
	var given []*query
	for _, q := range p.model.pending {
		if q.name.now != "" {
			given = append(given, q)
		}
	}
	if len(given) == 0 {
		return
	}
	q := given[p.n(len(given))]
	for _, who := range p.peers {
		if who.conn == q.handler.conn && !who.conn.eof {
			body := object{{"query_id", q.name.now}, {"result", pick(&p.source, payloads[1:]...)}, {"success", p.n(4) > 0}, {"error", "e"}}
			who.request("answer", "commbus", "Reply", body)
			who.deliver(len(who.wire))
			return
		}
	}
}

func (p *peer) deliverSome(n int) {
	if !p.conn.eof {
		p.deliver(n)
	}
}

// leave half-closes the connection; one that has nothing more to send is closed then.
func (p *program) leave(who *peer) {
	if !who.conn.eof {
		who.halfClose()
	}
	if !who.shut && who.sess.Load().Done {
		who.close()
	}
}

func (p *program) advance(ms int64) {
	p.clock(ms)
	p.model.advance(ms)
	p.house.check()
}

// shutdown is what a signal does (kernel-ipc §2.7): what was read is served, then the sessions hear
// of it.
func (p *program) shutdown() {
	if p.drained {
		return
	}
	p.drained = true
	for _, who := range slices.Clone(p.peers) {
		who.serveHeld()
	}
	for _, who := range p.peers {
		who.sess.Drain(p.now())
	}
	p.model.drain()
	p.house.check()
}

func (p *program) badLength(who *peer) {
	if who.conn.eof {
		return
	}
	n := pick(&p.source, 0, uint32(p.house.model.set.maxFrame+1), 1<<31, 1<<32-1)
	who.wire = binary.BigEndian.AppendUint32(who.wire, n)
	who.wire = append(who.wire, "never read"...)
	who.deliver(len(who.wire) - len("never read"))
}

// finish lets everything come out, then looks at the whole state through a fresh connection.
func (p *program) finish() {
	for _, who := range slices.Clone(p.peers) {
		who.deliverSome(len(who.wire))
		if !who.shut {
			who.drain()
		}
	}
	last := p.house.open()
	last.ask("kernel", "GetSystemStatus", object{})
	last.ask("kernel", "GetProcessCounts", object{})
	last.ask("kernel", "GetQuotaDefaults", object{})
	last.ask("kernel", "ListProcesses", object{{"limit", 3}})
	for _, s := range p.model.sessions {
		last.ask("orchestration", "GetSessionState", object{{"process_id", s.pid}})
		last.ask("orchestration", "GetNextInstruction", object{{"process_id", s.pid}})
	}
	for _, who := range slices.Clone(p.peers) {
		if p.drained && who != last && !who.sess.Load().Done {
			p.fail(who, "is not done after the drain")
		}
		if who != last {
			who.close()
		}
	}
	last.ask("kernel", "GetSystemStatus", object{})
	last.close()
	if b := p.svc.Stats().Bus; b.ActiveSubscribers != 0 || b.PendingQueries != 0 || b.BufferedBytes != 0 {
		p.t.Fatalf("all connections are closed and the bus holds %+v", b)
	}
}

// ask sends one well-formed request and has it taken.
func (p *peer) ask(service, method string, body object) {
	p.request("last", service, method, body)
	p.deliver(len(p.wire))
}

// request writes one request to the wire.
func (p *peer) request(id, service, method string, body object) {
	payload := appendValue(nil, object{{"id", id}, {"service", service}, {"method", method}, {"body", body}}, nil)
	p.wire = appendFrame(p.wire, request, payload)
}
