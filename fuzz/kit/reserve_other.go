//go:build !linux

package kit

import (
	"net"
	"testing"
)

// Reserve returns an address of loopback that was free a moment ago.
func Reserve(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
