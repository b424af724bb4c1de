package questions

// Question: is a query's bookkeeping small beside its two frames?

import (
	"testing"
	"time"

	"trunkline/engine/bus"
)

// answerer replies to every query from inside Wake.
type answerer struct {
	bus    *bus.Bus
	stream *bus.Stream
	result []byte
}

// Wake is bus.Port's.
func (a *answerer) Wake() {
	for m := a.stream.Pop(); m != nil; m = a.stream.Pop() {
		a.bus.Reply(a, m.Body, true, a.result, nil)
		m.Release()
	}
}

// asker counts its answers.
type asker struct{ answered int }

// QueryDone is bus.Caller's.
func (a *asker) QueryDone(_ *bus.Query, answer bus.Answer) {
	if answer.Status == bus.Answered {
		a.answered++
	}
}

func BenchmarkBusQuery(b *testing.B) { measure(b, busQueries()) }

func busQueries() []question {
	return []question{{name: "answered", prepare: func(tb testing.TB) work {
		b := newBus(tb)
		a, c, typ := &answerer{bus: b, result: []byte("now")}, &asker{}, []byte("sum")
		a.stream, _ = b.Handle(bus.QueryHandler, a, []string{"sum"}, 20)
		build := func(m *bus.Message, id []byte) { m.Body = append(m.Body, id...) }
		run := func() bus.Outcome {
			_, outcome := b.Query(typ, 5*time.Second, c, build)
			return outcome
		}
		if outcome := run(); outcome != bus.Sent || c.answered != 1 {
			tb.Fatalf("outcome %d, %d answers", outcome, c.answered)
		}
		return work{run: func() { run() }}
	}}}
}
