//go:build !race

package tools

import (
	"testing"

	"trunkline/handlers/toolhost/dsstate"
)

// TestNoopDoesNotAllocate: it is the tool that is called most, and all that a call costs is the server's (toolhost §10).
func TestNoopDoesNotAllocate(t *testing.T) {
	b := newBench(t)
	noop, call, ctx := b.byID["AID.NOOP.v1"], callOf("AID.NOOP.v1", []byte(`{}`), new(dsstate.State)), t.Context()
	if n := testing.AllocsPerRun(100, func() { noop.Run(ctx, call) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestPickAllocatesItsResultOnly: not in proportion to the input.
func TestPickAllocatesItsResultOnly(t *testing.T) {
	input := []byte(`{"x":[{"y":"z"}],"te\u0078t":"t","n":1,"n":2,"other":{"path":"p"}}`)
	if n := testing.AllocsPerRun(100, func() { pick(input, "text", "n") }); n > 2 {
		t.Errorf("%v allocations", n)
	}
}
