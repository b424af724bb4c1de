package exacta

import (
	"strconv"

	"trunkline/codec/jsonx"
	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
)

// maxWindow bounds the window of a subscription (exacta §3.5).
const maxWindow = 4096

// subscription is a subscribe that was read.
type subscription struct {
	project, session, correlation codec.ID
	none                          bool
	given                         bool   // after_stream_seq or after_seq is
	after                         uint64 // it
	window                        int
}

// subscribe answers a subscribe (exacta §3.5).
func (s *session) subscribe() {
	id := append([]byte(nil), s.in.RequestID...)
	sub := s.in.payload.subscription()
	if s.in.payload.field != "" {
		s.sendAck(id, nil, nil, errcode.New("IPC-009", s.in.payload.field+s.in.payload.why, s.in.payload.field))
		return
	}
	if sub.session != (codec.ID{}) && sub.session != s.srv.session { // before the project, which no restarted server has open
		s.sendAck(id, nil, nil, errcode.New("ST-003", "session_id: another session"))
		return
	}
	p := s.srv.project(sub.project)
	if p == nil {
		s.sendAck(id, nil, nil, notOpen())
		return
	}
	s.follows(id, p, &sub)
}

// follows answers a subscribe of an open project.
func (s *session) follows(id []byte, p *project, sub *subscription) {
	j := p.journal
	st := j.Status()
	at := &place{Cursor: projects.Cursor{All: !sub.none, From: st.Last + 1, Correlation: sub.correlation, Window: sub.window}}
	after, replayed := st.Last, 0
	if sub.given && !sub.none {
		ok := sub.after <= st.Last && sub.after+1 >= st.Oldest
		after = sub.after
		if sub.correlation != (codec.ID{}) {
			after, ok = j.Behind(sub.correlation, sub.after)
		}
		if !ok {
			s.sendAck(id, nil, nil, errcode.New("IPC-007", "oldest_stream_seq: "+strconv.FormatUint(st.Oldest, 10)+", last_stream_seq: "+strconv.FormatUint(st.Last, 10)))
			return
		}
		replayed = j.Count(after, st.Last, sub.correlation)
		at.Next, at.From, at.move = after+1, after+1, true
	}
	s.enterAll()
	s.feed(j, st.Last+1)
	result := p.id.Append([]byte(`{"stream":"exacta:event","project_id":"`))
	result = s.srv.session.Append(append(result, `","session_id":"`...))
	result = append(append(append(result, `","state":"`...), st.State.String()...), '"')
	result = strconv.AppendUint(append(result, `,"oldest_stream_seq":`...), st.Oldest, 10)
	result = strconv.AppendUint(append(result, `,"last_stream_seq":`...), st.Last, 10)
	result = strconv.AppendInt(append(result, `,"replayed":`...), int64(replayed), 10)
	o := &outgoing{Answer: projects.Answer{Journal: j, After: after}, cursor: at}
	s.sendAck(id, o, append(result, '}'), nil)
}

// sendAck queues the answer of a subscribe, behind the events that came before it.
func (s *session) sendAck(id []byte, o *outgoing, result []byte, f *errcode.Fault) {
	if o == nil {
		o = new(outgoing)
	}
	o.Line = codec.AppendAck(nil, id, s.srv.cfg.Clock, result, f)
	s.send(*o)
}

// subscription reads the fields of a subscribe.
func (p *payload) subscription() (sub subscription) {
	sub.project = p.id("project_id")
	if p.get("mode").Kind != jsonx.End {
		mode := p.text("mode", 0, maxPath, ": project or none is expected")
		if sub.none = mode == "none"; mode != "none" && mode != "project" {
			p.bad("mode", ": project or none is expected")
		}
	}
	after := "after_stream_seq"
	if p.get("correlation_id").Kind != jsonx.End {
		sub.correlation = p.id("correlation_id")
		after = "after_seq"
	}
	if v := p.get(after); v.Kind != jsonx.End && v.Kind != jsonx.Null {
		n, ok := jsonx.ParseInt(v.Raw)
		if v.Kind != jsonx.Number || !ok || n < 0 {
			p.bad(after, ": an integer from 0 is expected")
		}
		sub.given, sub.after = true, uint64(n)
	}
	if p.get("session_id").Kind != jsonx.End {
		sub.session = p.id("session_id")
	}
	if v := p.get("window"); v.Kind != jsonx.End {
		n, ok := jsonx.ParseInt(v.Raw)
		if v.Kind != jsonx.Number || !ok || n < 0 || n > maxWindow {
			p.bad("window", ": an integer from 0 to 4096 is expected")
		}
		sub.window = int(n)
	}
	return sub
}

// ack takes a receipt of a client. A malformed one is ignored.
func (s *session) ack() {
	id := s.in.payload.id("project_id")
	v := s.in.payload.get("stream_seq")
	n, ok := jsonx.ParseInt(v.Raw)
	if s.in.payload.field != "" || v.Kind != jsonx.Number || !ok || n < 0 {
		return
	}
	if p := s.srv.project(id); p != nil && s.feeds[p.journal] != nil {
		s.feeds[p.journal].Acked(uint64(n))
		s.port.Wake()
	}
}
