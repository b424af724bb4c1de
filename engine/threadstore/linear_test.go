package threadstore

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"trunkline/fuzz/rounds"
)

// threadOp is a call on one thread.
type threadOp struct {
	kind string // post, read, ack
	key  string
	seq  uint64 // of an ack, and what a read begins behind
}

// threadResult is its answer: the number of a message or of the end of a page, and the code.
type threadResult struct {
	seq  uint64
	code Code
}

// threadModel is a thread whose calls take effect one after the other.
var threadModel = porcupine.Model{
	Init: func() any { return linearState{} },
	Step: func(state, input, output any) (bool, any) {
		s, op, got := state.(linearState), input.(threadOp), output.(threadResult)
		switch op.kind {
		case "post":
			if at := s.keys[keyIndex(op.key)]; at > 0 {
				return got == threadResult{at, OK}, s
			}
			s.latest++
			s.keys[keyIndex(op.key)] = s.latest
			return got == threadResult{s.latest, OK}, s
		case "read":
			return got == threadResult{s.latest, OK}, s
		}
		switch {
		case op.seq > s.latest:
			return got == threadResult{s.latest, AckBeyond}, s
		case op.seq < s.cursor:
			return got == threadResult{s.cursor, AckBehind}, s
		}
		s.cursor = op.seq
		return got == threadResult{0, OK}, s
	},
}

const linearKeys = 24

type linearState struct {
	latest, cursor uint64
	keys           [linearKeys]uint64
}

func keyIndex(key string) (i int) {
	_, _ = fmt.Sscanf(key, "k%d", &i)
	return i
}

// TestLinearizable runs posts, reads and acknowledgements of one thread at once, each answered when
// the journal is durable up to its index, and looks for an order that explains the answers.
func TestLinearizable(t *testing.T) {
	for range rounds.Of(10, 40) {
		r := newRig(t, Config{HotBytes: 1, segment: 600})
		r.Start()
		id := r.create()
		began := time.Now()
		var mu sync.Mutex
		var history []porcupine.Operation
		call := func(client int, op threadOp) {
			from := time.Since(began)
			got, index := threadResult{}, uint64(0)
			switch op.kind {
			case "post":
				p, ref := r.Post(alice, id, textPost(op.key, op.key), r.now)
				got, index = threadResult{p.Seq, ref.Code}, p.Index
			case "read":
				// The end of the thread as a reader sees it.
				_, p, ref := r.Read(bob, id, maxSeq, 1, true, nil)
				got, index = threadResult{p.Next, ref.Code}, p.Index
			case "ack":
				rec, ref := r.Ack(bob, id, op.seq, r.now)
				got, index = threadResult{uint64(ref.N), ref.Code}, rec.Index
			}
			if index > 0 {
				r.sync()
			}
			mu.Lock()
			defer mu.Unlock()
			history = append(history, porcupine.Operation{ClientId: client, Input: op, Call: int64(from), Output: got, Return: int64(time.Since(began))})
		}
		var running sync.WaitGroup
		for client := range 4 {
			running.Go(func() {
				for i := range 8 {
					switch (client + i) % 4 {
					case 0, 1:
						call(client, threadOp{kind: "post", key: fmt.Sprintf("k%d", (client*5+i)%linearKeys)})
					case 2:
						call(client, threadOp{kind: "read"})
					case 3:
						call(client, threadOp{kind: "ack", seq: uint64(i)})
					}
				}
			})
		}
		running.Wait()
		if result := porcupine.CheckOperationsTimeout(threadModel, history, 20*time.Second); result == porcupine.Illegal {
			t.Fatalf("no order explains %v", history)
		}
		r.Close()
		_ = r.log.Close()
	}
}
