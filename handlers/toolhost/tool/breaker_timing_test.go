package tool

import "testing"

func BenchmarkBreaker(b *testing.B) {
	br := NewBreaker(BreakerConfig{Threshold: DefaultThreshold, Cooldown: DefaultCooldown, Now: func() int64 { return 0 }})
	b.ReportAllocs()
	for b.Loop() {
		probe, _ := br.Allow()
		br.Start(probe)
		br.Done(probe, nil)
	}
}
