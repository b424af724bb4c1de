package tools

import (
	"context"

	"trunkline/handlers/toolhost/dsstate"
	"trunkline/handlers/toolhost/tool"
)

// askSup hands a question to whoever supervises: it leaves its input in DS1 and answers with it.
func askSup() Builtin {
	return builtin(tool.Descriptor{
		AID:           "AID.ASK_SUP.v1",
		Name:          "ask_user_for_clarification",
		Deterministic: true,
		Tags:          []string{"tag.meta"},
		SideEffects:   []string{"none"},
		Fast:          true,
	}, runAskSup)
}

func runAskSup(_ context.Context, c *tool.Call) tool.Result {
	c.State.Set(1, dsstate.Artifact{
		Type:       "ask_sup",
		Provenance: "ask_sup",
		Content:    string(c.Input),
		Size:       int64(len(c.Input)),
	})
	return tool.Result{Output: append([]byte(nil), c.Input...)}
}
