// Command natsreply is a NATS server and the responder of a request-reply service in one process,
// so that its CPU time is that of the whole round trip: a request in, its delivery to the
// responder, the reply, its delivery to who asked.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"trunkline/bench/peers/internal/peer"
)

const (
	// startTimeout bounds the wait for the listener.
	startTimeout = 10 * time.Second
	// readBuffer is what the responder takes at most at a time: many turns of the server's own
	// 64 KiB buffers.
	readBuffer = 1 << 20
	// greeting makes a connection a responder's: no acknowledgements, one subscription.
	greeting = `CONNECT {"verbose":false,"pedantic":false,"echo":false,"protocol":1,"name":"responder"}` + "\r\nSUB bench.get 1\r\nPING\r\n"
)

// start runs a server and waits until it listens. Its settings are the defaults, but for what a
// benchmark would trip over.
func start() (*server.Server, error) {
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT,
		NoLog: true, NoSigs: true,
		// All requests in flight wait on the responder's one connection: at the default of 64 MiB,
		// full depth on every connection would have the server hold publishers back, or drop the
		// responder as a slow consumer.
		MaxPending: 1 << 30,
		// The responder reads as fast as it can and is never cut off for a pause of the machine.
		WriteDeadline: time.Minute,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the NATS server: %w", err)
	}
	go s.Start()
	if !s.ReadyForConnections(startTimeout) {
		return nil, errors.New("cannot start the NATS server: it does not listen")
	}
	return s, nil
}

// respond answers every request with size bytes until the connection ends, and calls ready when the
// subscription stands: the server takes a connection's lines in turn, so that who publishes after
// its PONG is answered. It speaks the protocol itself, as a quick client would: all requests of one
// read are answered with one write. The connection is an ordinary one over loopback: over the
// server's in-process pipe, which hands every piece from goroutine to goroutine, a pipelined
// request costs twice as much.
func respond(addr string, size int, ready func()) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return fmt.Errorf("cannot connect the responder: %w", err)
	}
	if _, err := io.WriteString(conn, greeting); err != nil {
		return fmt.Errorf("cannot subscribe: %w", err)
	}
	reply := fmt.Appendf(nil, " %d\r\n%s\r\n", size, bytes.Repeat([]byte{'v'}, size))
	buf, held := make([]byte, readBuffer), 0
	var out []byte
	for {
		n, err := conn.Read(buf[held:])
		if err != nil {
			return fmt.Errorf("cannot read requests: %w", err)
		}
		held += n
		var used int
		var stands bool
		if out, used, stands, err = take(out[:0], buf[:held], reply); err != nil {
			return err
		}
		if stands {
			ready()
		}
		if held = copy(buf, buf[used:held]); held == len(buf) {
			return errors.New("cannot take a request larger than the buffer")
		}
		if len(out) == 0 {
			continue
		}
		if _, err := conn.Write(out); err != nil {
			return fmt.Errorf("cannot reply: %w", err)
		}
	}
}

// take appends the answers to what b begins with to out and returns how much of b that was. stands
// reports a PONG.
func take(out, b, reply []byte) (_ []byte, used int, stands bool, err error) {
	for {
		rest := b[used:]
		line, _, whole := bytes.Cut(rest, []byte("\r\n"))
		if !whole {
			return out, used, stands, nil
		}
		end := len(line) + len("\r\n")
		switch verb, _, _ := bytes.Cut(line, []byte(" ")); string(verb) {
		case "MSG": // MSG <subject> <sid> <reply-to> <#bytes>
			last := bytes.LastIndexByte(line, ' ')
			size, err := strconv.Atoi(string(line[last+1:]))
			if err != nil || size < 0 || bytes.Count(line, []byte(" ")) != 4 {
				return out, used, stands, fmt.Errorf("cannot answer %q: want a reply subject and a size", line)
			}
			if end += size + len("\r\n"); len(rest) < end {
				return out, used, stands, nil
			}
			inbox := line[bytes.LastIndexByte(line[:last], ' ')+1 : last]
			out = append(append(append(out, "PUB "...), inbox...), reply...)
		case "PING":
			out = append(out, "PONG\r\n"...)
		case "PONG":
			stands = true
		case "INFO":
		default:
			return out, used, stands, fmt.Errorf("cannot take %q", line)
		}
		used += end
	}
}

func main() {
	reply := peer.Reply()
	s, err := start()
	if err != nil {
		peer.Fatal(err)
	}
	peer.ExitOnSignal()
	addr := s.Addr().String()
	peer.Fatal(respond(addr, reply, func() { peer.Announce(addr) }))
}
