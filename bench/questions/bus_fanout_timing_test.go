package questions

// Question: what of an event's cost is the bus itself, without frames, per subscriber and with
// every processor publishing at once?

import (
	"fmt"
	"testing"

	"trunkline/engine/bus"
)

// subscriber is a connection that looks for itself.
type subscriber struct{ woken bool }

// Wake is bus.Port's.
func (s *subscriber) Wake() { s.woken = true }

func newBus(tb testing.TB) *bus.Bus {
	b := bus.New(bus.Config{})
	tb.Cleanup(b.Close)
	return b
}

func BenchmarkBusFanOut(b *testing.B) { measure(b, fanOuts()) }

func fanOuts() []question {
	var all []question
	for _, n := range []int{0, 1, 10, 100, 1000} {
		// engine/bus counts 0, 1 and 100 itself.
		all = append(all, question{name: fmt.Sprintf("subscribers=%d", n), free: n == 10 || n == 1000, prepare: func(tb testing.TB) work {
			return fanOutWork(tb, n)
		}})
	}
	return all
}

func fanOutWork(tb testing.TB, subscribers int) work {
	b := newBus(tb)
	typ, body := []byte("process.state_changed"), make([]byte, 180)
	streams := make([]*bus.Stream, subscribers)
	for i := range streams {
		streams[i] = b.Subscribe(&subscriber{}, []string{string(typ)}, 20)
	}
	run := func() (delivered, popped int) {
		m := b.NewMessage(200)
		m.Body = append(m.Body, body...)
		delivered = b.Publish(typ, m)
		for _, s := range streams {
			for m := s.Pop(); m != nil; m = s.Pop() {
				popped++
				m.Release()
			}
		}
		return delivered, popped
	}
	if delivered, popped := run(); delivered != subscribers || popped != subscribers {
		tb.Fatalf("delivered %d, popped %d of %d", delivered, popped, subscribers)
	}
	return work{run: func() { run() }, bytes: len(body), parts: subscribers, unit: "ns/delivery"}
}

func BenchmarkBusParallel(b *testing.B) {
	bus := newBus(b)
	typ, body := []byte("nobody.listens"), make([]byte, 180)
	bus.Subscribe(&subscriber{}, []string{"other"}, 0)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m := bus.NewMessage(200)
			m.Body = append(m.Body, body...)
			if bus.Publish(typ, m) != 0 {
				b.Error("somebody listens")
			}
		}
	})
}
