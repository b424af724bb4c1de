package tools

import (
	"context"

	"trunkline/handlers/toolhost/tool"
)

// noop does nothing, and says so with {}.
func noop() Builtin {
	return builtin(tool.Descriptor{
		AID:           "AID.NOOP.v1",
		Name:          "noop",
		Deterministic: true,
		Tags:          []string{"tag.meta"},
		SideEffects:   []string{"none"},
		Fast:          true,
	}, func(context.Context, *tool.Call) tool.Result { return tool.Result{} })
}
