package main

import (
	"fmt"
	"net"
	"strconv"

	"github.com/nats-io/nats-server/v2/server"
)

// hostPort divides an address as the server's settings want it, which take 0 for the default port
// and not for any free one.
func hostPort(addr string) (host string, port int, err error) {
	host, digits, err := net.SplitHostPort(addr)
	if err == nil {
		port, err = strconv.Atoi(digits)
	}
	if err != nil {
		return "", 0, fmt.Errorf("cannot listen on %q: %w", addr, err)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}
