package tool

import "testing"

func TestStatus(t *testing.T) {
	f := func(s Status, text string) {
		t.Helper()
		if s.String() != text {
			t.Errorf("status %d is %q, want %q", s, s.String(), text)
		}
		if got := ParseStatus([]byte(text)); got != s {
			t.Errorf("%q is read as %v", text, got)
		}
	}
	f(OK, "OK")
	f(InvalidPick, "INVALID_PICK")
	f(ToolError, "TOOL_ERROR")
	f(BreakerTrip, "BREAKER_TRIP")

	for _, text := range []string{"", "ok", "OK ", "Ok", "OK\x00", "SUCCESS", "INVALID", "TOOL_ERRORS"} {
		if got := ParseStatus([]byte(text)); got != ToolError {
			t.Errorf("%q is read as %v, want TOOL_ERROR", text, got)
		}
	}
	if got := Status(200).String(); got != "TOOL_ERROR" {
		t.Errorf("a status that is none is written as %q", got)
	}
	if got := ParseStatus(nil); got != ToolError {
		t.Errorf("no status is read as %v", got)
	}
}

func TestFail(t *testing.T) {
	r := Fail("missing path")
	if r.Status() != ToolError || r.ErrorText() != "missing path" || r.Output != nil || r.Dispatch() != nil {
		t.Errorf("%+v", r)
	}
	if zero := (Result{}); zero.Status() != OK || zero.ErrorText() != "" {
		t.Errorf("the zero result is %v %q", zero.Status(), zero.ErrorText())
	}
	if forgot := (Result{Failure: &Failure{Error: "x"}}); forgot.Status() != ToolError {
		t.Errorf("a failure without a status is %v", forgot.Status())
	}
}
