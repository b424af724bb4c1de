package conformance

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/fuzz/rounds"
)

// poster posts messages with keys of its own over one connection at a time, some ahead.
type poster struct {
	thread, name string
	next         int       // the key that is sent next
	answers      []receipt // by key; empty ids are to come
	err          error
}

// ahead is how many messages a poster does not wait for.
const ahead = 20

// run posts what has no answer until all have one, or the server dies. An answer that was there
// already has to come again.
func (w *poster) run(p *peer, from int) {
	sent := from
	for done := from; done < len(w.answers); done++ {
		for ; sent < min(done+ahead, len(w.answers)); sent++ {
			if p.send(`{"id":%d,"method":"post_message","params":{"thread_id":"%s","schema_version":1,"kind":"chat","body":"%s-%d","idempotency_key":"%s-%d"}}`,
				sent, w.thread, w.name, sent, w.name, sent) != nil {
				return
			}
		}
		line, err := p.in.ReadBytes('\n')
		if err != nil {
			return
		}
		var v struct {
			ID     int
			OK     bool
			Result struct {
				MessageID string `json:"message_id"`
				Seq       int
			}
		}
		got := &w.answers[done]
		if json.Unmarshal(line, &v) != nil || !v.OK || v.ID != done || got.seq > 0 && *got != (receipt{v.Result.MessageID, v.Result.Seq}) {
			w.err = fmt.Errorf("%s-%d: %q, was %v", w.name, done, line, *got)
			return
		}
		*got = receipt{v.Result.MessageID, v.Result.Seq}
		w.next = max(w.next, done+1)
	}
}

// TestManyPosts posts to one thread over 64 connections: the numbers are 1, 2, 3 …, without a gap,
// a double or an error. In its long form these are 640,000.
func TestManyPosts(t *testing.T) { manyPosts(t, nil) }

// TestManyPostsOverCrashes is the same while the server is killed again and again, in its long form
// every two seconds: what was acknowledged is there once, and a key that is posted again gets its
// first answer.
func TestManyPostsOverCrashes(t *testing.T) {
	manyPosts(t, func() {
		if rounds.Long() {
			time.Sleep(2 * time.Second)
			return
		}
		time.Sleep(time.Duration(20+rand.IntN(100)) * time.Millisecond)
	})
}

// manyPosts kills the server whenever wait returns; nil: never.
func manyPosts(t *testing.T, wait func()) {
	const conns = 64
	each := rounds.Pick(150, rounds.Of(100, 1250))
	s := start(t, "TRUNKLINE_STORE_SNAPSHOT_BYTES=2000000", "TRUNKLINE_THREADS_HOT_BYTES=1048576")
	id := s.create()
	var all []*poster
	for i := range conns {
		all = append(all, &poster{thread: id, name: fmt.Sprint(i), answers: make([]receipt, each)})
	}
	crashes := 0
	for left := conns; left > 0; {
		var running sync.WaitGroup
		for _, w := range all {
			p := s.dial(executioner)
			running.Go(func() {
				w.run(p, max(0, w.next-ahead))
				_ = p.Close()
			})
		}
		if wait != nil && crashes < 50 {
			wait()
			s.kill()
			crashes++
		}
		running.Wait()
		left = 0
		for _, w := range all {
			if w.err != nil {
				t.Fatal(w.err)
			}
			if w.next < each {
				left++
			}
		}
		if s.cmd.ProcessState != nil {
			s.run()
		}
	}
	for _, w := range all { // once more
		if w.run(s.dial(executioner), 0); w.err != nil {
			t.Fatal(w.err)
		}
	}
	bySeq := make([]*receipt, conns*each+1)
	names := make([]string, len(bySeq))
	for _, w := range all {
		for i := range w.answers {
			a := &w.answers[i]
			if a.seq < 1 || a.seq >= len(bySeq) || bySeq[a.seq] != nil {
				t.Fatalf("%s-%d has number %d", w.name, i, a.seq)
			}
			bySeq[a.seq], names[a.seq] = a, fmt.Sprint(w.name, "-", i)
		}
	}
	p := s.dial(reviewer)
	for seq := 1; seq < len(bySeq); {
		_ = p.send(`{"id":1,"method":"read_messages","params":{"thread_id":"%s","since_seq":%d,"limit":200}}`, id, seq-1)
		line, err := p.in.ReadBytes('\n')
		var v struct {
			Result struct {
				Messages []struct {
					MessageID string `json:"message_id"`
					Seq       int
					Body      string
				}
			}
		}
		if err != nil || json.Unmarshal(line, &v) != nil || len(v.Result.Messages) == 0 {
			t.Fatalf("%q (%v)", line, err)
		}
		for _, m := range v.Result.Messages {
			if m.Seq != seq || m.MessageID != bySeq[seq].id || m.Body != names[seq] {
				t.Fatalf("%+v, want %v with %s", m, *bySeq[seq], names[seq])
			}
			seq++
		}
	}
	s.want("read_messages", reviewer, fmt.Sprintf(`{"thread_id":"%s","since_seq":%d}`, id, conns*each), 200, fmt.Sprintf(`{"messages":[],"next_seq":%d,"has_more":false}`, conns*each))
	t.Logf("%d messages, %d crashes", conns*each, crashes)
	if strings.Contains(s.log.String(), "ERROR") {
		t.Error(s.log)
	}
}
