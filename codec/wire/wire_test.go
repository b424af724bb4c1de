package wire

import "testing"

func TestCodesAndTheirSpellings(t *testing.T) {
	want := []string{"OK", "NOT_FOUND", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "RESOURCE_EXHAUSTED", "UNAVAILABLE",
		"CANCELLED", "TIMEOUT", "INTERNAL"}
	if len(want) != NumCodes {
		t.Fatalf("%d codes, want %d", NumCodes, len(want))
	}
	for i, spelling := range want {
		c := Code(i)
		if got := c.String(); got != spelling {
			t.Errorf("code %d is spelled %q, want %q", i, got, spelling)
		}
		if back, ok := ParseCode(spelling); !ok || back != c {
			t.Errorf("%q is read as %d, %v", spelling, back, ok)
		}
	}
	if _, ok := ParseCode("not_found"); ok {
		t.Error("spellings are case-sensitive")
	}
	// A code outside the set must never leave the server as something clients do not know.
	if got := Code(NumCodes).String(); got != "INTERNAL" {
		t.Errorf("got %q", got)
	}
}
