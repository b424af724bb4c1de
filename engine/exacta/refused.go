package exacta

import "trunkline/engine/exacta/wire"

// refusals are the answers to what the gate refuses (exacta §5.3), made when they are first needed.
type refusals [states][wire.Commands]wire.Prepared

// of returns the answer to a command that is refused in a state.
func (r *refusals) of(c wire.Command, now State) wire.Prepared {
	answer := &r[now][c]
	if *answer == nil {
		*answer = wire.Prepare(refuse(c, now))
	}
	return *answer
}

// Refused appends the answer of a request whose turn it is if the project refuses it because of its
// state (exacta §5.3) and nothing else runs, and reports whether it does. Otherwise the request
// goes to Handle. Nothing is changed but what the project remembers of itself, and once warm
// nothing is allocated where dst has room.
func (p *Project) Refused(dst, id []byte, c wire.Command, handle wire.ID, clock wire.Clock) ([]byte, bool) {
	if p.closed || p.unsaved || p.activity != nil || p.preview != nil || p.expired() {
		return dst, false
	}
	if allowed, _ := gate(c); allowed.has(p.state) {
		return dst, false
	}
	var correlation wire.ID
	if f := p.known(c, handle); f != nil {
		correlation = f.ID
	} else {
		correlation = p.IDs.Next(wire.Correlation)
	}
	p.noteCode(id, c, "ST-001", clock.Now())
	return p.refusals.of(c, p.state).Append(dst, id, correlation, clock), true
}
