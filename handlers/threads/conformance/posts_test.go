package conformance

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"trunkline/fuzz/rounds"
)

// TestManyPosts posts to one thread over 64 connections: the numbers are 1, 2, 3 …, without a gap,
// a double or an error. In its long form these are 640,000.
func TestManyPosts(t *testing.T) {
	const conns, pipelined = 64, 20
	each := rounds.Of(100, 1250) / pipelined * pipelined
	s := start(t)
	id := s.create()
	seen := make([]bool, conns*each+1)
	var mu sync.Mutex
	var running sync.WaitGroup
	for c := range conns {
		p := s.dial(executioner)
		running.Go(func() {
			for i := 0; i < each; i += pipelined {
				for j := range pipelined {
					_ = p.send(`{"id":%d,"method":"post_message","params":{"thread_id":"%s","schema_version":1,"kind":"chat","body":"hello","idempotency_key":"%d-%d"}}`, i+j, id, c, i+j)
				}
				for j := range pipelined {
					line, err := p.in.ReadBytes('\n')
					var v struct {
						ID     int
						OK     bool
						Result struct{ Seq int }
					}
					if err != nil || json.Unmarshal(line, &v) != nil || !v.OK || v.ID != i+j {
						t.Errorf("%q (%v)", line, err)
						return
					}
					mu.Lock()
					if n := v.Result.Seq; n < 1 || n >= len(seen) || seen[n] {
						t.Errorf("number %d", n)
					} else {
						seen[n] = true
					}
					mu.Unlock()
				}
			}
		})
	}
	running.Wait()
	for n, ok := range seen[1:] {
		if !ok {
			t.Fatalf("nothing has number %d", n+1)
		}
	}
	s.want("read_messages", reviewer, fmt.Sprintf(`{"thread_id":"%s","since_seq":%d}`, id, conns*each), 200, fmt.Sprintf(`{"messages":[],"next_seq":%d,"has_more":false}`, conns*each))
	t.Logf("%d messages", conns*each)
}
