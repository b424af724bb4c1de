package main

import (
	"testing"

	"trunkline/fuzz/kit/ipctest"
)

func TestPubErrors(t *testing.T) {
	srv := ipctest.Start(t)
	f := func(code int, stderr, stdin string, args ...string) {
		t.Helper()
		runClient(t, stdin, append([]string{"pub", "--addr", srv.Addr}, args...)...).want(t, code, "", stderr)
	}
	f(2, "INVALID_ARGUMENT: Invalid JSON payload: ", "", "a", "{bad")
	f(2, "INVALID_ARGUMENT: event_type is reserved\nhint: commbus.Publish takes event_type, payload, source", "", "commbus.gap")
	f(2, "cannot publish an empty payload", "", "a", "")
	f(2, "cannot publish an empty payload", "", "a", "-")
	f(2, "missing argument TYPE", "")
	srv.Drain()
	f(5, "hint: is the server running?", "", "a")
}
