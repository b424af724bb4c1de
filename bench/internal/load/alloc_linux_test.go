//go:build !race

package load

import (
	"testing"

	"trunkline/bench/internal/fakekernel"
)

func TestNoAllocs(t *testing.T) {
	tape := new(Tape)
	tape.AddFresh(0, request("Create", "p-"+Placeholder))
	tape.Add(1, request("Terminate", "p-"+Placeholder))
	tape.seal(64)
	w := &worker{s: &Session{}}
	c := &conn{tape: tape, depth: 64, batches: make([]batch, 65)}
	var replies []byte
	for range 64 {
		replies = append(replies, fakekernel.OK("r1")...)
	}
	n := testing.AllocsPerRun(100, func() {
		c.push(batch{at: 1, n: 64})
		tape.take(64)
		c.inflight += 64
		if _, n, err := splitKernel(w, c, replies); n != 64 || err != nil {
			t.Fatal(n, err)
		}
		c.settle(64, 100, &w.hist)
	})
	if n != 0 {
		t.Errorf("%v allocations per batch of 64 requests, want 0", n)
	}
}

func TestSplitLinesDoesNotAllocate(t *testing.T) {
	b := []byte("ab\ncd\nef\n")
	if n := testing.AllocsPerRun(100, func() { _, _, _ = SplitLines(b, 3) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	answers := []byte("hello\nok 1\nok 22\n")
	if n := testing.AllocsPerRun(100, func() {
		if used, lines, _, err := splitAnswers(answers, "ok", "hello", "x"); used != len(answers) || lines != 2 || err != nil {
			t.Fatal(used, lines, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
