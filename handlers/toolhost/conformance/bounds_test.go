package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const hit = `{"ok":true,"status":"OK","output_json":"{}","error":"","idempotent_hit":true,"ds_state":{"delta":true,"slots":{},"removed_slots":[]}}`

// TestIdempotencyEntriesAreBounded: 1,024 are kept, the least recently used one makes room.
func TestIdempotencyEntriesAreBounded(t *testing.T) {
	overAll(t, func(t *testing.T, over string) {
		c := serve(t, over, newDir(t), nil, "--serve", "builtin").dial(t)
		f := func(key int, reply string) {
			t.Helper()
			say1(c, fmt.Sprintf(`{"aid":"AID.NOOP.v1","idempotency_key":"k%d"}`, key))
			want(t, c, reply)
		}
		entries := func(n, hits int) {
			t.Helper()
			say1(c, `{"aid":"_stats"}`)
			if got, part := c.next(patience), fmt.Sprintf(`"idempotency_entries":%d,"idempotency_hits":%d,`, n, hits); !strings.Contains(got, part) {
				t.Errorf("want %s, got %s", part, got)
			}
		}
		const most = 1024
		for i := range most {
			f(i, nop)
		}
		entries(most, 0)
		f(0, hit)    // now the most recently used one
		f(most, nop) // makes k1 go
		f(0, hit)    // still there
		f(most, hit) //
		f(1, nop)    // gone: runs again, makes k2 go
		f(3, hit)    //
		f(2, nop)    // gone, makes k4 go
		entries(most, 4)
	})
}

// TestKeysInFlightAreBounded: 1,024 executions with keys, none of them ended, leave no room.
func TestKeysInFlightAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("opens 1,025 connections")
	}
	root := newDir(t)
	s := newScript(t, unix, "full")
	s.root = root
	s.copyFiles([]string{"ext.json"})
	srv := serve(t, unix, root, nil, "--serve", "ext.json", "--breaker-threshold", "100000")
	const most = 1024
	for i := range most {
		c := srv.dial(t)
		say1(c, fmt.Sprintf(`{"aid":"AID.EXT.MANY.v1","inputs":{"ms":60000},"idempotency_key":"%d"}`, i))
	}
	watch := srv.dial(t)
	for deadline := time.Now().Add(4 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		say1(watch, `{"aid":"_stats"}`)
		got := watch.next(patience)
		if strings.Contains(got, `"idempotency_entries":1024,`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not all keys are in flight: %s", got)
		}
	}
	c := srv.dial(t)
	say1(c, `{"aid":"AID.EXT.MANY.v1","inputs":{"ms":1},"idempotency_key":"one more","request_id":1}`)
	want(t, c, `{"ok":false,"error":"idempotency_cache_full","request_id":1}`)
}
