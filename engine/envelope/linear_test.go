//go:build !race

package envelope

import (
	"runtime"
	"testing"

	"trunkline/codec/transcode"
)

// TestLargeInputsAreLinear takes a step of envelopes of megabytes whose members are as many and as
// small as can be, past the bounds on what a peer may send. Anything that looks through a list for
// each of its elements would not end within a test; the memory is compared with a quarter of it.
func TestLargeInputsAreLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 50 MB")
	}
	f := func(what string, n int, text func(n int) string) {
		t.Helper()
		spent := func(n int) uint64 {
			src := []byte(text(n))
			packed := transcode.AppendMsgPack(nil, src)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for form, src := range map[Form][]byte{JSON: src, MsgPack: packed} {
				var s step
				if p := s.e.Reopen(form, src); p != nil {
					t.Fatalf("%s: %.200s", what, p.Message())
				}
				if s.begin(testEngine()); form == JSON {
					s.normalise()
					s.run()
					s.goals.store(&s.e)
				}
				s.e.Append(nil)
			}
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		few, many := spent(n/4), spent(n)
		if many > 8*few+1<<20 {
			t.Errorf("%s: %d bytes for %d, %d for %d", what, few, n/4, many, n)
		}
	}
	const n = 100_000
	const id = `{"envelope_id":"e",`
	f("outputs", n, func(n int) string { return id + `"outputs":{` + manyOf(n, `"o%d":{"n":%d}`) + `}}` })
	f("stages with outputs", n, func(n int) string {
		return id + `"stage_order":[` + manyOf(n, `"s%d%d"`) + `],"outputs":{` + manyOf(n, `"s%d%d":{}`) + `}}`
	})
	f("outputs taken back", n, func(n int) string {
		return id + `"stage_order":["intent",` + manyOf(n, `"s%d%d"`) + `],"outputs":{"intent":{},` + manyOf(n, `"s%d%d":{}`) +
			`},"current_stage":"intent","clarification_pending":true,"clarification_response":"a"}`
	})
	f("goals", n, func(n int) string { return id + `"all_goals":[` + manyOf(n, `"g%d%d"`) + `]}` })
	f("goals reached", maxElements, func(n int) string {
		return id + `"current_stage":"critic","all_goals":[` + manyOf(n, `"g%d%d"`) + `],"outputs":{"critic":{"satisfied_goals":[` + manyOf(n, `"g%d%d"`) + `]}}}`
	})
	f("a known name", n, func(n int) string { return id + manyOf(n, `"iteration":1`) + `}` })
	f("an old name", n, func(n int) string { return id + manyOf(n, `"dag_mode":true`) + `}` })
	f("unknown names", n, func(n int) string { return id + manyOf(n, `"x%d":%d`) + `}` })
	f("parts of _ext", n, func(n int) string { return id + `"_ext":{` + manyOf(n, `"x%d":{"y":%d}`) + `}}` })
	f("stages of a set", n, func(n int) string { return id + `"completed_stage_set":{` + manyOf(n, `"x%d%d":true`) + `}}` })
	f("statuses", n, func(n int) string {
		return id + `"goal_completion_status":{` + manyOf(n, `"\u0067%d%d":"x"`) + `,"a":1,"a":"b"}}`
	})
	f("groups", n, func(n int) string {
		return `{"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{},` + manyOf(n, `"audit":{}`) + `}`
	})
}
