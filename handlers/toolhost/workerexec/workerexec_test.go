package workerexec

import "testing"

// TestArgv: the program and its arguments come last.
func TestArgv(t *testing.T) {
	argv := Argv(Limits{AddressSpace: 1 << 40, Data: 2, CPU: 3, FileSize: 4, OpenFiles: 5, UserThreads: 6}, "/bin/true", []string{"true", "x"})
	if argv[1] != Verb || argv[2] != "2,3,4,5,6,1099511627776," || argv[3] != "/bin/true" || argv[5] != "x" {
		t.Errorf("%q", argv)
	}
}
