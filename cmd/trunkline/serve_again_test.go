package main

import (
	"slices"
	"testing"
)

// TestStartAgainGivesNothingUp: what an operator has given up once is not given up by a process
// that starts again by itself, days later.
func TestStartAgainGivesNothingUp(t *testing.T) {
	for _, args := range [][]string{
		{"trunkline", "serve", "--recover-to-index", "7", "--dev"},
		{"trunkline", "serve", "--recover-to-index=7", "--dev"},
		{"trunkline", "serve", "--dev", "--recover-to-index", "7"},
		{"trunkline", "serve", "--dev"},
	} {
		if got := argsAgain(args); !slices.Equal(got, []string{"trunkline", "serve", "--dev"}) {
			t.Errorf("%q", got)
		}
	}
}
