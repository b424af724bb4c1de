//go:build !race

package envelope

import (
	"testing"
	"time"
)

func TestTextsDoNotAllocate(t *testing.T) {
	var (
		dst    = make([]byte, 0, 2048)
		full   = []byte("2024-02-29T23:59:59.123456789+05:30")
		bad    = []byte("2023-02-29T23:59:59.123456789+05:30")
		now    = time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
		id     = make([]byte, 1024)
		stage  = []byte("plan")
		reason = []byte("LLM_Failed_Fatally")
		other  = []byte("something else happened")
		kind   = []byte("Critic_Review")
		source = IDSource(RandomID)
	)
	f := func(what string, op func()) {
		t.Helper()
		if got := testing.AllocsPerRun(200, op); got != 0 {
			t.Errorf("%s: %v allocations, want 0", what, got)
		}
	}
	f("ValidTime", func() { validTime(full); validTime(bad) })
	f("ParseTime", func() { ParseTime(full); ParseTime(bad) })
	f("AppendTime", func() { appendTime(dst, now) })
	f("IDSource", func() { source(dst) })
	f("AppendDerivedID", func() { appendDerivedID(dst, id, stage, 3, 1, "confirmation") })
	f("ParseReason", func() { ParseReason(reason); ParseReason(other) })
	f("ParseInterruptKind", func() { parseInterruptKind(kind); parseInterruptKind(other) })
	f("spellings", func() {
		dst = append(append(dst[:0], LLMFailedFatally.Wire()...), AgentReview.String()...)
	})
}
