package ipc_test

import (
	"bytes"
	"net"
	"testing"
	"time"

	"trunkline/fuzz/kit/ipctest"
)

// TestARequestFieldOfAnotherTypeIsNamed: a field that is there and no string is not missing.
func TestARequestFieldOfAnotherTypeIsNamed(t *testing.T) {
	srv := ipctest.Start(t)
	f := func(payload, want string) {
		t.Helper()
		c, err := net.Dial("tcp", srv.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_ = c.SetDeadline(time.Now().Add(time.Minute)) // only a failure waits
		if _, err := c.Write(append([]byte{0, 0, 0, byte(len(payload) + 1), 1}, payload...)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 0, 512)
		for !bytes.Contains(got, []byte(want)) {
			n, err := c.Read(got[len(got):cap(got)])
			if got = got[:len(got)+n]; err != nil || len(got) == cap(got) {
				t.Fatalf("%v: %q, want %q", err, got, want)
			}
		}
	}
	const rest = "\xa7service\xa6kernel\xa6method\xa9GetStatus\xa4body\x80"
	f("\x84\xa2id\x07"+rest, "Invalid request field: id must be a string")
	f("\x84\xa2id\x90"+rest, "Invalid request field: id must be a string")
	f("\x84\xa2id\xc0"+rest, "Missing required request field: id")
	f("\x84\xa2id\xa17\xa7service\xc3\xa6method\xa1m\xa4body\x80", "Invalid request field: service must be a string")
	f("\x84\xa2id\xa17\xa7service\xa1s\xa6method\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00\xa4body\x80",
		"Invalid request field: method must be a string")
}
