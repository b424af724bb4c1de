//go:build !race

package builtin

import (
	"testing"

	"trunkline/handlers/toolhost/sessionstate"
)

// allocLines are the most allocations of one call of each tool that runs on a loop, or the reason
// for not counting them. The noop is called most: a call costs nothing but the server's work
// (toolhost §10).
var allocLines = map[string]any{
	"AID.NOOP.v1":              0,
	"AID.ASK_SUP.v1":           4,
	"AID.TEST.ECHO.v1":         4,
	"AID.EMBED.TEXT.v1":        "It returns a vector.",
	"AID.ERROR_SCAN.v1":        "It reads a file.",
	"AID.REPORT_SUMMARY.v1":    "It runs once after a scan.",
	"AID.FILE.READ.v1":         "It reads a file.",
	"AID.FILE.WRITE.v1":        "It writes a file.",
	"AID.HASH.DIGEST.v1":       "It reads a file.",
	"AID.PROC.SELF_METRICS.v1": "It reads files of the operating system.",
	"AID.MEMORY.APPEND.v1":     "It writes a file.",
	"AID.MEMORY.SEARCH.v1":     "It reads a file.",
	"AID.MEMORY.QUERY.v1":      "It reads a file.",
	"AID.VECDB.UPSERT.v1":      "It writes a file.",
	"AID.VECDB.QUERY.v1":       "It reads a file.",
}

// TestEveryToolHasItsAllocationLine fails for a tool without a line, and for one that allocates
// more.
func TestEveryToolHasItsAllocationLine(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	if len(allocLines) != len(b.byID) {
		t.Errorf("%d lines for %d tools", len(allocLines), len(b.byID))
	}
	for aid, builtin := range b.byID {
		most, counted := allocLines[aid].(int)
		if reason, _ := allocLines[aid].(string); !counted && reason == "" {
			t.Errorf("%s has no allocation line", aid)
		}
		if !counted {
			continue
		}
		call := callOf(aid, []byte(`{}`), new(sessionstate.State))
		if n := testing.AllocsPerRun(100, func() { builtin.Run(ctx, call) }); n > float64(most) {
			t.Errorf("%s: %v allocations, at most %d", aid, n, most)
		}
	}
}

// TestPickAllocatesItsResultOnly: not in proportion to the input.
func TestPickAllocatesItsResultOnly(t *testing.T) {
	input := []byte(`{"x":[{"y":"z"}],"te\u0078t":"t","n":1,"n":2,"other":{"path":"p"}}`)
	if n := testing.AllocsPerRun(100, func() { pick(input, "text", "n") }); n > 2 {
		t.Errorf("%v allocations", n)
	}
}
