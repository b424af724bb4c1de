//go:build !linux

package node

import (
	"net"
	"testing"
)

// reserve returns an address of loopback that was free a moment ago.
func reserve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
