//go:build !race

package selector

import (
	"context"
	"testing"
)

func TestNoAllocs(t *testing.T) {
	run := open(t, &Config{Tools: tools()}, `{"goal_id":"g","request_id":"q","candidate_tags":["tag.error"],"inputs":{"a":"\u00e9\n"}}`)
	st := run.Select(context.Background(), state("1", ""))
	buf := make([]byte, 0, 4096)
	f := func(what string, fn func()) {
		t.Helper()
		if n := testing.AllocsPerRun(100, fn); n != 0 {
			t.Errorf("%s: %v allocations, want 0", what, n)
		}
	}
	f("Step.Append", func() { buf = st.Append(buf[:0]) })
	f("Run.AppendOpened", func() { buf = run.AppendOpened(buf[:0]) })
	f("Run.AppendClosed", func() { buf = run.AppendClosed(buf[:0]) })
}
