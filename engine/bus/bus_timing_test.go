package bus

import (
	"fmt"
	"testing"
	"time"
)

// These benchmarks answer what one delivered event costs as the number of subscribers grows (goal G9: at most 0.5 µs), and
// whether a query's bookkeeping stays small beside its two frames. "ns/delivery" excludes frames and sockets.

func BenchmarkPublishPop(bm *testing.B) {
	for _, subscribers := range []int{0, 1, 10, 100, 1000} {
		bm.Run(fmt.Sprint("subscribers=", subscribers), func(bm *testing.B) {
			b := newBus(bm, Config{})
			streams := make([]*Stream, subscribers)
			for i := range streams {
				streams[i] = b.Subscribe(&port{}, []string{"process.state_changed"}, 20)
			}
			typ, body := []byte("process.state_changed"), make([]byte, 180)
			bm.ReportAllocs()
			bm.ResetTimer()
			for range bm.N {
				m := b.NewMessage(200)
				m.Body = append(m.Body, body...)
				b.Publish(typ, m)
				for _, s := range streams {
					for m := s.Pop(); m != nil; m = s.Pop() {
						m.Release()
					}
				}
			}
			if subscribers > 0 {
				bm.ReportMetric(float64(bm.Elapsed().Nanoseconds())/float64(bm.N)/float64(subscribers), "ns/delivery")
			}
		})
	}
}

func BenchmarkPublishParallel(bm *testing.B) {
	b := newBus(bm, Config{})
	body := make([]byte, 180)
	typ := []byte("nobody.listens")
	b.Subscribe(&port{}, []string{"other"}, 0)
	bm.ReportAllocs()
	bm.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m := b.NewMessage(200)
			m.Body = append(m.Body, body...)
			b.Publish(typ, m)
		}
	})
}

func BenchmarkQueryReply(bm *testing.B) {
	b := newBus(bm, Config{})
	p := &answerAtOnce{b: b}
	p.s, _ = b.Handle(QueryHandler, p, []string{"sum"}, 20)
	c := &countingCaller{}
	typ := []byte("sum")
	build := func(m *Message, id []byte) { m.Body = append(m.Body, id...) }
	bm.ReportAllocs()
	for range bm.N {
		if _, outcome := b.Query(typ, 5*time.Second, c, build); outcome != Sent {
			bm.Fatalf("outcome %d", outcome)
		}
	}
	if c.answered.Load() != int64(bm.N) {
		bm.Fatalf("%d answers for %d queries", c.answered.Load(), bm.N)
	}
}
