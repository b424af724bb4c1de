package threads

import (
	"testing"

	core "trunkline/engine/threads"
	"trunkline/handlers/threads/method"
)

// TestEveryMethodIsServed: each row has a function, and there is no other function.
func TestEveryMethodIsServed(t *testing.T) {
	s := New(Config{Engine: core.New(core.Config{})})
	for i := range method.Rows {
		if s.handlers[method.Rows[i].Name] == nil {
			t.Errorf("the method %s has no function", method.Rows[i].Name)
		}
	}
	if len(s.handlers) != len(method.Rows) {
		t.Errorf("%d functions for %d methods", len(s.handlers), len(method.Rows))
	}
}
