package questions

// Question: what does an event cost on its way from its publisher's frame to each subscriber's
// chunk, for up to 1000 subscribers?

import (
	"bytes"
	"fmt"
	"testing"

	"trunkline/codec/frame"
)

func BenchmarkPublish(b *testing.B) { measure(b, publishes()) }

func publishes() []question {
	var all []question
	for _, n := range []int{0, 1, 10, 100, 1000} {
		all = append(all, question{name: fmt.Sprintf("subscribers=%d", n), free: n != 0 && n != 1 && n != 100, prepare: func(tb testing.TB) work {
			return publishWork(tb, n)
		}})
	}
	return all
}

// publishWork publishes 16 events in one read, after which every subscriber takes its chunks.
func publishWork(tb testing.TB, subscribers int) work {
	const events = 16
	r := newRig(tb, nil)
	publisher, subs := r.connect(), make([]*peer, subscribers)
	for i := range subs {
		subs[i] = r.connect()
		subs[i].feed(request(tb, "commbus", "Subscribe", `{"event_types":["a.b"]}`))
	}
	one := request(tb, "commbus", "Publish", `{"event_type":"a.b","payload":"{\"n\":1}","source":"t"}`)
	in := bytes.Repeat(one, events)
	run := func() {
		publisher.feed(in)
		for _, s := range subs {
			s.pump()
		}
	}
	publisher.must(in, fmt.Sprintf(`"delivered":%d`, subscribers))
	for i, s := range subs {
		s.pump()
		if typ, _, _ := frame.Split(s.out, 1<<20); typ != frame.StreamChunk || countFrames(tb, s.out) != events {
			tb.Fatalf("subscriber %d got %d frames, the first of type %#x", i, countFrames(tb, s.out), byte(typ))
		}
	}
	return work{run: run, ops: events, bytes: len(one), parts: subscribers, unit: "ns/chunk"}
}
