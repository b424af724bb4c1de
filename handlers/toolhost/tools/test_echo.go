package tools

import (
	"context"

	"trunkline/handlers/toolhost/dsstate"
	"trunkline/handlers/toolhost/tool"
)

// testEcho leaves its input in DS6. It is for tests of callers: only a manifest brings it in.
func testEcho() Builtin {
	b := builtin(tool.Descriptor{
		AID:           "AID.TEST.ECHO.v1",
		Name:          "Test Echo Tool",
		Deterministic: true,
		Tags:          []string{"tag.test"},
		SideEffects:   []string{"none"},
		Fast:          true,
	}, runTestEcho)
	b.Hidden = true
	return b
}

func runTestEcho(_ context.Context, c *tool.Call) tool.Result {
	content := make([]byte, 0, len(`{"echo":}`)+len(c.Input))
	content = append(content, `{"echo":`...)
	content = append(content, c.Input...)
	content = append(content, '}')
	c.State.Set(6, dsstate.Artifact{
		Type:       "text",
		Provenance: "test_plugin",
		Content:    string(content),
		Size:       int64(len(content)),
	})
	return tool.Result{Output: []byte(`{"ok":true}`)}
}
