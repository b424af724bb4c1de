// Command natsreply is a NATS server and the responder of a request-reply service in one process,
// so that its CPU time is that of the whole round trip: a request in, its delivery to the
// responder, the reply, its delivery to who asked.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"trunkline/bench/peers/internal/peer"
)

// startTimeout bounds the wait for the listener.
const startTimeout = 10 * time.Second

// options are the server's settings: the defaults, but for what a benchmark would trip over.
func options(host string, port int) *server.Options {
	return &server.Options{
		Host: host, Port: port,
		NoLog: true, NoSigs: true,
		// All requests in flight wait on the responder's one connection: at the default of 64 MiB,
		// full depth on every connection would have the server hold publishers back, or drop the
		// responder as a slow consumer.
		MaxPending: 1 << 30,
		// The responder reads as fast as it can and is never cut off for a pause of the machine.
		WriteDeadline: time.Minute,
	}
}

// start runs a server and waits until it listens.
func start(host string, port int) (*server.Server, error) {
	s, err := server.NewServer(options(host, port))
	if err != nil {
		return nil, fmt.Errorf("cannot make the NATS server: %w", err)
	}
	go s.Start()
	if !s.ReadyForConnections(startTimeout) {
		return nil, errors.New("cannot start the NATS server: it does not listen")
	}
	return s, nil
}

// respond connects a responder and returns when its subscription stands; failed is called when it
// ends. The connection is an ordinary one over loopback: over the server's in-process pipe, which
// hands every piece from goroutine to goroutine, a pipelined request costs twice as much.
func respond(s *server.Server, size int, failed func(error)) error {
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		return fmt.Errorf("cannot connect the responder: %w", err)
	}
	r, ready := newResponder(conn, size), make(chan struct{})
	go func() { failed(r.serve(func() { close(ready) })) }()
	if err := r.greet(); err != nil {
		return err
	}
	select {
	case <-ready:
		return nil
	case <-time.After(startTimeout):
		return errors.New("cannot subscribe: the server does not answer")
	}
}

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "address to listen on")
	reply := flag.Int("reply", 174, "bytes of the constant reply")
	flag.Parse()

	host, port, err := hostPort(*addr)
	if err != nil {
		peer.Fatal(err)
	}
	s, err := start(host, port)
	if err != nil {
		peer.Fatal(err)
	}
	if err := respond(s, *reply, peer.Fatal); err != nil {
		peer.Fatal(err)
	}
	peer.ExitOnSignal()
	peer.Announce(s.Addr().String())
	s.WaitForShutdown()
}
