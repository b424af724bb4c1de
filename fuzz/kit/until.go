package kit

import (
	"testing"
	"time"
)

// patience is how long Until waits: only a test that fails takes as long.
const patience = 90 * time.Second

// Until waits for what comes by itself, on a busy machine later.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}
