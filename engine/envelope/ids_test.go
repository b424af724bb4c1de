package envelope

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestRandomID(t *testing.T) {
	form := regexp.MustCompile(`^env_[0-9a-f]{16}$`)
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				id := string(RandomID([]byte(EnvelopePrefix)))
				mu.Lock()
				if !form.MatchString(id) || seen[id] {
					t.Errorf("bad or repeated id %s", id)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// TestDerivedIDExample is example 9.8 of the envelope exchange.
func TestDerivedIDExample(t *testing.T) {
	got := appendDerivedID([]byte(confirmationPrefix), []byte("env_00000000000000a1"), []byte("plan"), 0, 1, Confirmation.String())
	if string(got) != "conf_9084cc48154543a5" {
		t.Fatalf("got %s", got)
	}
}

func TestDerivedID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id, stage := rapid.String().Draw(t, "id"), rapid.String().Draw(t, "stage")
		iteration, number := rapid.Int64().Draw(t, "iteration"), rapid.Int64().Draw(t, "number")
		kind := rapid.SampledFrom([]string{"clarification", "confirmation"}).Draw(t, "kind")
		sum := sha256.Sum256([]byte(strings.Join([]string{id, stage, decimal(iteration), decimal(number), kind}, "\x00")))
		want := "int_" + hex.EncodeToString(sum[:8])
		got := appendDerivedID([]byte("int_"), []byte(id), []byte(stage), iteration, number, kind)
		if string(got) != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}

// decimal writes n without the function that the code under test uses.
func decimal(n int64) string {
	digits, magnitude := "", uint64(n)
	if n < 0 {
		magnitude = -magnitude
	}
	for ; magnitude > 9; magnitude /= 10 {
		digits = string(rune('0'+magnitude%10)) + digits
	}
	digits = string(rune('0'+magnitude)) + digits
	if n < 0 {
		return "-" + digits
	}
	return digits
}
