package crashtest

import (
	"fmt"
	"testing"

	"trunkline/engine/journal"
)

// verify compares what a server holds, whose journal had ended at last before it came up, with what
// clients got.
func (h *history) verify(t testing.TB, s *server, c *clock, last journal.Index) (err error) {
	t.Helper()
	p := s.connect()
	p.now = c.now
	for _, th := range h.things {
		if err := th.verify(t, p, last); err != nil {
			return err
		}
	}
	for _, f := range []func(testing.TB, *peer, journal.Index) error{h.counters, h.queue, h.envelopesThere} {
		if err := f(t, p, last); err != nil {
			return err
		}
	}
	return nil
}

// verify wants one of the views that the changes up to last can have left.
func (th *thing) verify(t testing.TB, p *peer, last journal.Index) error {
	must, can := within(th.bounds, last)
	is := ""
	for _, q := range th.questions {
		r := p.call(t, q.service, q.method, q.body)
		is += r.String() + "\n"
	}
	for n := must; n <= can; n++ {
		if th.views[n] == is {
			return nil
		}
	}
	return fmt.Errorf("after %d to %d of %d changes %v\nis   %s\nwant %s", must, can, len(th.bounds), th.questions[0], is, th.views[must])
}

// counters are those that several add to: exact between what was acknowledged and what was sent,
// and not less than was seen.
func (h *history) counters(t testing.TB, p *peer, last journal.Index) error {
	must, can := within(h.hot, last)
	r := p.call(t, "kernel", "CheckQuota", `{"pid":"hot"}`)
	is := max(r.number("tool_calls"), 0)
	if !r.ok && h.hotMade <= last {
		return fmt.Errorf("the shared counter is gone: %v", r.body)
	}
	if is < int64(must) || is > int64(can) {
		return fmt.Errorf("the shared counter is %d, want %d to %d", is, must, can)
	}
	for _, s := range h.seen {
		if s.safe <= last && s.value > is {
			return fmt.Errorf("the shared counter is %d and was shown as %d", is, s.value)
		}
	}
	for user, bounds := range h.rates {
		must, can := within(bounds, last)
		r := p.must(t, "kernel", "CheckRateLimit", fmt.Sprintf(`{"user_id":%q,"record":false}`, user))
		if is := r.number("current_count"); is < int64(must) || is > int64(can) {
			return fmt.Errorf("%s made %d requests, want %d to %d", user, is, must, can)
		}
	}
	return nil
}

// queue compares the state of every process that was put into the ready queue, and then takes all
// that are there.
func (h *history) queue(t testing.TB, p *peer, last journal.Index) error {
	ready := map[string]bool{}
	for pid, in := range h.queued {
		r := p.call(t, "kernel", "GetProcess", fmt.Sprintf(`{"pid":%q}`, pid))
		state, out, end := r.str("state"), h.taken[pid], h.ended[pid]
		there := func(b bound) bool { return b.upTo > 0 && b.upTo <= last }
		can := func(b bound) bool { return b.upTo > 0 && b.after < last }
		var bad bool
		switch state {
		case "":
			bad = there(in)
		case "NEW":
			bad = there(in)
		case "READY":
			bad = !can(in) || there(out)
			ready[pid] = true
		case "RUNNING":
			bad = !can(out) || there(end)
		case "TERMINATED":
			bad = !can(end)
		default:
			bad = true
		}
		if bad {
			return fmt.Errorf("%s is %q, and was queued in %v, taken in %v, ended in %v", pid, state, in, out, end)
		}
	}
	for {
		r := p.call(t, "kernel", "GetNextRunnable", `{"start":true}`)
		if !r.ok {
			break
		}
		if !ready[r.str("pid")] {
			return fmt.Errorf("%s came out of the queue, and is not READY", r.str("pid"))
		}
		delete(ready, r.str("pid"))
	}
	if len(ready) > 0 {
		return fmt.Errorf("%v are READY, and not in the queue", ready)
	}
	return nil
}

func (h *history) envelopesThere(t testing.TB, p *peer, last journal.Index) error {
	for id, b := range h.envelopes {
		r := p.call(t, "engine", "UpdateEnvelope", fmt.Sprintf(`{"envelope":{"envelope_id":%q,"raw_input":"x"}}`, id))
		if !r.ok && b.upTo <= last || r.ok && b.after >= last {
			return fmt.Errorf("envelope %s, stored in %v: %v", id, b, r.body)
		}
	}
	return nil
}
