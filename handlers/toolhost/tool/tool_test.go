package tool_test

import (
	"context"
	"testing"
	"time"

	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

// echo is a tool as another room writes one.
type echo struct{}

func (echo) Run(ctx context.Context, c *tool.Call) tool.Result {
	if err := ctx.Err(); err != nil {
		return tool.Broken(c.AID, tool.Timeout, 0, err.Error())
	}
	content := `{"echo":` + string(c.Input) + `}`
	c.State.Set(6, sessionstate.Artifact{Type: "text", Provenance: c.Now().UTC().Format("2006"), Content: content, Size: int64(len(content))})
	return tool.Result{Output: []byte(`{"ok":true}`)}
}

func TestCallOfTool(t *testing.T) {
	var session sessionstate.State
	run := func(ctx context.Context) (tool.Result, string) {
		state := session.Clone()
		r := echo{}.Run(ctx, &tool.Call{AID: "AID.TEST.ECHO.v1", Input: []byte(`{"x":1}`), State: &state, Now: func() time.Time { return time.Unix(0, 0) }})
		return r, string(sessionstate.AppendDelta(nil, &session, &state))
	}
	r, delta := run(context.Background())
	want := `{"delta":true,"slots":{"6":{"type":"text","provenance":"1970","content_json":"{\"echo\":{\"x\":1}}","size_bytes":16}},"removed_slots":[]}`
	if r.Status() != tool.OK || string(r.Output) != `{"ok":true}` || delta != want {
		t.Errorf("%v %s %s", r.Status(), r.Output, delta)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r, delta = run(ctx)
	if r.Status() != tool.ToolError || r.ErrorText() != "toolhost timed out for AID.TEST.ECHO.v1" || delta != sessionstate.EmptyDelta {
		t.Errorf("%v %q %s", r.Status(), r.ErrorText(), delta)
	}
}
