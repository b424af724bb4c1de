package shim

import "testing"

// TestLimitsOnTheWay: what Argv writes, parse reads; what is cut off is no limit.
func TestLimitsOnTheWay(t *testing.T) {
	want := Limits{AddressSpace: 1 << 40, Data: 2, CPU: 3, FileSize: 4, OpenFiles: 5, UserThreads: 6}
	argv := Argv(want, "/bin/true", []string{"true", "x"})
	if argv[1] != Verb || argv[3] != "/bin/true" || argv[5] != "x" {
		t.Errorf("%q", argv)
	}
	if got := parse(argv[2]); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for text, want := range map[string]Limits{"": {}, "7": {Data: 7}, "7,x": {Data: 7}, ",,8": {FileSize: 8}} {
		if got := parse(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}
