package questions

// Question: do the queue and a full table stay flat from ten thousand to ten million rows, where
// each creation evicts the oldest process that has ended?

import (
	"fmt"
	"testing"

	"trunkline/engine/kernel"
)

func BenchmarkTableTurnover(b *testing.B) {
	for _, rows := range []string{"10k", "1M", "10M"} {
		b.Run("op=Next/rows="+rows, func(b *testing.B) {
			t := tableOf(b, rows)
			beside(b, 1, func(int) func() bool { return t.nextAndBack() })
		})
		for _, goroutines := range []int{1, 4} {
			b.Run(fmt.Sprintf("op=CreateTerminate/rows=%s/goroutines=%d", rows, goroutines), func(b *testing.B) {
				t := tableOf(b, rows)
				beside(b, goroutines, func(int) func() bool { return t.createAndEnd() })
			})
		}
	}
}

// nextAndBack takes the front of the queue and puts it at its end.
func (t *table) nextAndBack() func() bool {
	var out kernel.PCB
	return func() bool {
		now := kernel.Instant{Mono: t.mono.Load()}
		return t.k.Next(now, true, &out) == kernel.OK && t.k.Transition(now, out.PID, nil, kernel.Ready, nil, &out) == kernel.OK
	}
}

// createAndEnd makes a process and ends it.
func (t *table) createAndEnd() func() bool {
	c := t.creator()
	return func() bool { return c.create() == kernel.OK && c.end() == kernel.OK }
}
