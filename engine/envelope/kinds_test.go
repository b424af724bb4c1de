package envelope

import (
	"strings"
	"testing"
	"time"
)

func TestInterruptKinds(t *testing.T) {
	seen := map[InterruptKind]bool{}
	f := func(s string, k InterruptKind, name string, retention time.Duration) {
		t.Helper()
		seen[k] = true
		for _, s := range []string{s, strings.ToUpper(s), strings.ToUpper(s[:1]) + s[1:]} {
			if got := parseInterruptKind([]byte(s)); got != k {
				t.Errorf("ParseInterruptKind(%q) = %v, want %v", s, got, k)
			}
		}
		if k.String() != name || k.Retention() != retention {
			t.Errorf("%v is kept for %v, want %s, %v", k, k.Retention(), name, retention)
		}
	}
	f("clarification", Clarification, "clarification", 24*time.Hour)
	f("confirmation", Confirmation, "confirmation", time.Hour)
	f("agent_review", AgentReview, "agent_review", time.Hour)
	f("critic_review", AgentReview, "agent_review", time.Hour)
	f("checkpoint", Checkpoint, "checkpoint", 24*time.Hour)
	f("resource_exhausted", ResourceExhausted, "resource_exhausted", time.Hour)
	f("timeout", TimedOut, "timeout", time.Hour)
	f("system_error", SystemError, "system_error", time.Hour)
	f("unspecified", UnknownKind, "unknown", 0)
	if len(seen) != int(numInterruptKinds) {
		t.Fatalf("%d of %d kinds tested", len(seen), numInterruptKinds)
	}
}

func TestUnknownInterruptKinds(t *testing.T) {
	for _, s := range []string{"", "unknown", "confirmation ", "confirm", "agent-review", "time_out", "chec\u212apoint"} {
		if k := parseInterruptKind([]byte(s)); k != UnknownKind {
			t.Errorf("ParseInterruptKind(%q) = %v", s, k)
		}
	}
	if k := InterruptKind(99); k.String() != "unknown" || k.Retention() != 0 {
		t.Errorf("kind out of range: %v, %v", k, k.Retention())
	}
}
