package crash

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"trunkline/codec/wire"
	"trunkline/handlers/ipc/ipcclient"
)

// Clients of the histories, by number: those that work all the time, who takes processes off the
// ready queue, and who reads at rest.
const (
	historians, historianConns = 8, 6
	firstTaker                 = historians
	reader                     = firstTaker + takers
)

const (
	// historyBurst is how many calls a client makes without a pause.
	historyBurst = 8
	// historyEnd is how long before the end of the load clients stop making pauses and turn to the
	// same process, so that the kill meets calls that depend on each other.
	historyEnd = 15 * time.Millisecond
	// usageMost bounds the tokens of one RecordUsage: sums show which ones are in it.
	usageMost = 1 << 40
)

// write works on the histories' processes until the connection is lost or stop is set; the load
// goes on for span.
func (hs *histories) write(ctx context.Context, c *ipcclient.Conn, number int, rng *rand.Rand, span time.Duration, stop *atomic.Bool) {
	end := time.Now().Add(span - historyEnd)
	for alive := true; alive && !stop.Load() && c.Err() == nil; { // where all is full, nothing else reports the kill
		ending := !time.Now().Before(end)
		for i := 0; alive && i < historyBurst; i++ {
			h := hs.open[rng.IntN(len(hs.open))]
			if ending {
				h = hs.open[hs.rounds%len(hs.open)]
			}
			if !h.full() {
				alive = hs.do(ctx, c, h, number, hs.draw(rng, h))
			}
		}
		pause := time.Duration(rng.IntN(100)) * time.Microsecond
		if !ending {
			pause = min(time.Duration(rng.Int64N(int64(span)/8+1)), time.Until(end))
		}
		time.Sleep(pause)
	}
}

// draw draws a call. Ends are rare: a process that ended changes no more.
func (hs *histories) draw(rng *rand.Rand, h *history) call {
	in := call{n: hs.serial.Add(1)}
	switch n := rng.IntN(1000); {
	case n < 40 || !h.created.Load() && n < 500:
		in.method, in.flag = create, rng.IntN(2) == 0
	case n < 180:
		in.method = get
	case n < 220:
		in.method = quota
	case n < 380:
		in.method, in.n = usage, 1+rng.Int64N(usageMost)
	case n < 420:
		in.method = schedule
	case n < 620:
		in.method, in.to = move, moves[rng.IntN(len(moves))]
	case n < 622:
		in.method, in.to = move, []string{stateTerminated, stateZombie}[rng.IntN(2)]
	case n < 624:
		in.method = terminate
	case n < 650:
		in.method, in.flag = begin, rng.IntN(2) == 0
	case n < 850:
		in.method, in.agent = report, rng.IntN(len(agents))
		if rng.IntN(40) == 0 {
			in.result = []result{completes, fails}[rng.IntN(2)]
		}
	case n < 920:
		in.method = instruct
	default:
		in.method = show
	}
	return in
}

var moves = []string{stateReady, stateReady, stateRunning, stateRunning, stateWaiting, stateBlocked, stateNew}

// do makes a call and keeps it with its reply.
func (hs *histories) do(ctx context.Context, c *ipcclient.Conn, h *history, number int, in call) (alive bool) {
	from := hs.g.since()
	out, err := in.send(ctx, c, h.pid)
	to := hs.g.since()
	return hs.keep(h, number, in, from, out, err, to)
}

// keep keeps a call with its reply. What was refused before it was looked at is none.
func (hs *histories) keep(h *history, number int, in call, from int64, out reply, err error, to int64) (alive bool) {
	hs.g.count.add(sent, 1)
	var refusal *ipcclient.Error
	switch {
	case err == nil:
		alive = true
	case refused(err, wire.NotFound, wire.FailedPrecondition, wire.InvalidArgument):
		errors.As(err, &refusal)
		out, alive = reply{code: refusal.Code, said: named(refusal.Message)}, true
	default:
		var lost bool
		if lost, alive = hs.g.evaluate(err, in.String()+" of "+h.pid); !lost {
			return alive
		}
		out = reply{lost: true}
	}
	if in.method == create && alive {
		h.created.Store(true)
	}
	if alive && in.changes() && out.code == wire.OK {
		hs.g.count.add(confirmed, 1)
	}
	h.record(number, in, from, out, to)
	return alive
}

func (in call) changes() bool {
	switch in.method {
	case get, quota, hand, instruct, show:
		return false
	}
	return true
}

// took keeps that who takes processes off the ready queue was given p, or, without a reply, that it
// may have been any of them.
func (hs *histories) took(number int, start bool, from int64, p ipcclient.Process, err error) {
	in, to := call{method: hand}, hs.g.since()
	if start {
		in.method = next
	}
	var gone *ipcclient.ConnError
	switch {
	case err == nil:
		if h := hs.of(p.PID); h != nil {
			h.record(number, in, from, processReply(&p), to)
		}
	case start && errors.As(err, &gone):
		for _, h := range hs.open {
			h.record(number, in, from, reply{lost: true}, to)
		}
	}
}

// settle reads everything after a restart.
func (hs *histories) settle(ctx context.Context, c *ipcclient.Conn) error {
	for _, h := range hs.open {
		hs.do(ctx, c, h, reader, call{method: get})
		hs.do(ctx, c, h, reader, call{method: show})
		found, _, err := observeWorld(ctx, c, h.pid)
		if err != nil {
			return err
		}
		h.is, h.began = found, len(h.ops)
	}
	return nil
}

// finish ends the present histories' processes, has the histories evaluated and begins others.
func (hs *histories) finish(ctx context.Context, c *ipcclient.Conn) error {
	for _, h := range hs.open {
		hs.do(ctx, c, h, reader, call{method: terminate})
	}
	if err := hs.settle(ctx, c); err != nil {
		return err
	}
	hs.evaluate()
	for _, h := range hs.open {
		hs.past = append(hs.past, h.is)
	}
	hs.begin()
	return nil
}
