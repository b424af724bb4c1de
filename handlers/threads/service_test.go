package threads

import (
	"testing"

	"trunkline/handlers/threads/method"
)

// TestEveryMethodIsServed: each row has a function, and there is no other function.
func TestEveryMethodIsServed(t *testing.T) {
	all := handlers()
	for i := range method.Rows {
		if all[method.Rows[i].Name] == nil {
			t.Errorf("the method %s has no function", method.Rows[i].Name)
		}
	}
	if len(all) != len(method.Rows) {
		t.Errorf("%d functions for %d methods", len(all), len(method.Rows))
	}
}
