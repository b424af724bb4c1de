package exacta

import (
	"strings"
	"testing"

	"trunkline/engine/connection"
	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
)

// TestRepeatBehindEvents: the stored answer of a request comes behind its events too, also on a
// connection that did not get them yet (exacta §2.4).
func TestRepeatBehindEvents(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	one, two := newPeer(t, s, 1), newPeer(t, s, 2)
	one.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	one.want(2, "LogEntry1 101:ok")
	two.send(ask(2, "OpenProject", `"path":"`+dir+`"`))
	two.want(2, "LogEntry2 102:ok")
	one.want(1, "LogEntry2")
	one.send(ask(3, "ApplyDiffSet", emptySet))
	one.want(2, "LogEntry3 103:ok")
	two.send(ask(3, "ApplyDiffSet", emptySet), ask(1, "OpenProject", `"path":"`+dir+`"`))
	two.want(3, "LogEntry3 103:ok 101:ok")

	two.send(subscribeTo(4, `,"window":1`))
	two.want(1, "104:ok")
	one.send(ask(5, "ApplyDiffSet", emptySet), ask(6, "ApplyDiffSet", emptySet))
	one.want(4, "LogEntry4 105:ok LogEntry5 106:ok")
	two.send(ask(6, "ApplyDiffSet", emptySet)) // its event waits for an ack
	two.want(1, "LogEntry4")
	two.send(`{"ipc_version":"1.0","type":"ack","project_id":"` + pid + `","stream_seq":4}`)
	two.want(2, "LogEntry5 106:ok")
}

// TestOwnEventsOnce: a subscription of one correlation goes back to its events only, and not to
// those of other requests of the connection (exacta §3.5).
func TestOwnEventsOnce(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 101:ok")
	p.send(ask(2, "ExtractIntent", `"user_input":"append \"x\" to a.txt"`))
	p.want(4, "StateChanged2 StateChanged3 LogEntry4 102:ok")
	p.send(ask(3, "ApplyDiffSet", emptySet))
	p.want(2, "LogEntry5 103:ok")
	flow := `,"correlation_id":"` + codec.NewScope("t1", "p1").Next(codec.Correlation).String() + `","after_seq":1`
	p.send(subscribeTo(4, flow))
	p.want(3, "104:ok StateChanged3 LogEntry4")
	p.send(subscribeTo(5, flow+`,"window":1`))
	p.want(2, "105:ok StateChanged3") // and no more
	p.send(subscribeTo(6, flow))
	p.want(3, "106:ok StateChanged3 LogEntry4")
	p.send(ask(7, "ApplyDiffSet", emptySet))
	p.want(2, "LogEntry6 107:ok")
}

// TestOpenThatIsTurnedAway: an OpenProject that finds too many requests parked adds nothing to the
// subscriptions of its connection (exacta §2.4).
func TestOpenThatIsTurnedAway(t *testing.T) {
	m := newModelled(t, useModel, "")
	m.send(ask(2, "ExtractIntent", `"user_input":"x"`))
	<-m.arrived
	validate := func(n int) string { return ask(n, "ValidatePlan", `"plan_id":"`+pid+`"`) }
	for n := range 63 {
		m.send(validate(3 + n))
	}
	two := newPeer(t, m.sess.(*session).srv, 2)
	two.send(validate(100), ask(101, "OpenProject", `"path":"`+m.dir+`"`))
	two.want(1, "165:RES-004")
	m.send(ask(102, "Cancel", `"execution_id":"00000000-0000-4000-8000-000000000102"`))
	two.want(1, "164:ST-001") // the events before it are of others
}

// TestLongWebSocketMessage: a byte too many comes before the end of a WebSocket, and has no answer
// (exacta §2.2).
func TestLongWebSocketMessage(t *testing.T) {
	const most = 65_536
	f := func(carrier Carrier, n int, answered bool) {
		t.Helper()
		p := newPeerOver(t, newServerOf(t, Config{MaxMessageBytes: most}), 1, carrier)
		_, out, _ := p.sess.Feed([]byte("{"+strings.Repeat(" ", n-1)), nil, connection.Instant{})
		if (len(out) > 0) != answered {
			t.Errorf("%v, %d bytes: %s", carrier, n, out)
		}
	}
	f(WebSocket, most+1, false)
	f(Unix, most, false)
	f(Unix, most+1, true)
}

// TestOpenRepeatedMeanwhile: a connection that repeats an OpenProject which runs gets its events
// too (exacta §2.4).
func TestOpenRepeatedMeanwhile(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	one, two := newPeer(t, s, 1), newPeer(t, s, 2)
	line := []byte(ask(1, "OpenProject", `"path":"`+dir+`"`) + "\n")
	s.opening.Lock()
	for _, p := range []*peer{one, two} {
		if used, _, _ := p.sess.Feed(line, nil, connection.Instant{}); used != len(line) {
			t.Fatal("not taken")
		}
	}
	s.opening.Unlock()
	one.want(2, "LogEntry1 101:ok")
	two.want(2, "LogEntry1 101:ok")
	one.send(ask(2, "ApplyDiffSet", emptySet))
	two.want(1, "LogEntry2")
}

// TestOutboxThatIsNeverEmpty: its room does not grow with what went through it.
func TestOutboxThatIsNeverEmpty(t *testing.T) {
	s := newPeer(t, newServer(t), 1).sess.(*session)
	for i := range 2 * answerMemory {
		s.send(outgoing{Answer: projects.Answer{Line: []byte{byte(i)}}})
	}
	for i := range 100 * answerMemory {
		o, ok := s.peek()
		if !ok || o.Line[0] != byte(i) {
			t.Fatalf("%d: %v", i, o)
		}
		s.pop(o)
		s.send(outgoing{Answer: projects.Answer{Line: []byte{byte(i)}}})
	}
	if n := cap(s.outbox); n > 8*answerMemory {
		t.Errorf("room for %d", n)
	}
}
