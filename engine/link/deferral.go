package link

// Journal is what replies wait for.
type Journal interface {
	// Durable returns the index up to which nothing can be lost any more.
	Durable() uint64
	// FlushNext has what was appended written with a group that is written anyway; false: there is
	// none.
	FlushNext() bool
	// Flush has it written now.
	Flush()
}

// Gate is a journal with the sessions whose replies wait for it. One gate serves all protocols of a
// process.
type Gate struct {
	// Mark is up to where the journal is durable. Its owner raises it.
	Mark Watermark
	// Journal returns the journal, nil where nothing is kept. It must not allocate.
	Journal func() Journal
}

// RoundEnded implements RoundHook: the changes of one round of a loop share a group.
func (g *Gate) RoundEnded() { g.Journal().Flush() }

// Deferral holds the replies of one session back until the journal is durable up to their index.
// The zero Deferral holds none.
type Deferral struct {
	held  []byte
	until uint64
}

// keptHeld bounds the buffer that a Deferral keeps.
const keptHeld = 256 << 10

// Hold takes back what was appended to out behind start until the journal is durable up to an
// index: what a reply reports, or an event shows, must survive a crash. Replies keep their order,
// so those behind held ones are held too.
func (d *Deferral) Hold(p *Port, g *Gate, out []byte, start int, upTo uint64) []byte {
	if len(out) == start {
		return out
	}
	j := g.Journal()
	if j == nil || len(d.held) == 0 && upTo <= j.Durable() {
		return out
	}
	d.held = append(d.held, out[start:]...)
	d.until = max(d.until, upTo)
	p.Await(&g.Mark, d.until)
	if !j.FlushNext() { // else the round shares the next group without being ended for it
		p.AtRoundEnd(g)
	}
	return out[:start]
}

// Append appends the held replies, if the journal is durable up to their index.
func (d *Deferral) Append(p *Port, g *Gate, out []byte) []byte {
	if len(d.held) == 0 {
		return out
	}
	if g.Mark.At() < d.until {
		p.Await(&g.Mark, d.until) // the owner may be another one now
		return out
	}
	out = append(out, d.held...)
	if d.held = d.held[:0]; cap(d.held) > keptHeld {
		d.held = nil
	}
	return out
}

// Len returns how many bytes are held.
func (d *Deferral) Len() int { return len(d.held) }
