package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
)

// subject is what requests are published to.
const subject = "bench.get"

// greeting makes a connection a responder's: no acknowledgements, one subscription.
const greeting = `CONNECT {"verbose":false,"pedantic":false,"echo":false,"protocol":1,"name":"responder"}` + "\r\nSUB " + subject + " 1\r\nPING\r\n"

// readBuffer is what the responder takes at most at a time: many turns of the server's own 64 KiB
// buffers.
const readBuffer = 1 << 20

var (
	crlf = []byte("\r\n")
	pong = []byte("PONG\r\n")
)

// responder answers every request of one connection with the same reply. It speaks the protocol
// itself, as a quick client would: all requests of one read are answered with one write.
type responder struct {
	conn  net.Conn
	reply []byte // " SIZE CR LF PAYLOAD CR LF", what follows the subject of a reply
	out   []byte
}

func newResponder(conn net.Conn, size int) *responder {
	reply := fmt.Appendf(nil, " %d\r\n", size)
	reply = append(append(reply, bytes.Repeat([]byte{'v'}, size)...), crlf...)
	return &responder{conn: conn, reply: reply}
}

// greet subscribes. The server takes a connection's lines in turn, so that who publishes after the
// PONG is answered: serve calls ready then.
func (r *responder) greet() error {
	if _, err := io.WriteString(r.conn, greeting); err != nil {
		return fmt.Errorf("cannot subscribe: %w", err)
	}
	return nil
}

// serve answers until the connection ends. It calls ready once, when the subscription stands.
func (r *responder) serve(ready func()) error {
	buf, held := make([]byte, readBuffer), 0
	for {
		n, err := r.conn.Read(buf[held:])
		if err != nil {
			return fmt.Errorf("cannot read requests: %w", err)
		}
		held += n
		used, stands, err := r.take(buf[:held])
		if err != nil {
			return err
		}
		if stands && ready != nil {
			ready()
			ready = nil
		}
		if held = copy(buf, buf[used:held]); held == len(buf) {
			return errors.New("cannot take a request larger than the buffer")
		}
		if len(r.out) == 0 {
			continue
		}
		if _, err := r.conn.Write(r.out); err != nil {
			return fmt.Errorf("cannot reply: %w", err)
		}
		r.out = r.out[:0]
	}
}

// take puts the answers to what b begins with into out and returns how much of b that was. stands
// reports a PONG.
func (r *responder) take(b []byte) (used int, stands bool, err error) {
	for {
		rest := b[used:]
		end := bytes.Index(rest, crlf)
		if end < 0 {
			return used, stands, nil
		}
		line := rest[:end]
		switch verb, _, _ := bytes.Cut(line, []byte(" ")); string(verb) {
		case "MSG":
			inbox, size, err := message(line)
			if err != nil {
				return used, stands, err
			}
			whole := end + len(crlf) + size + len(crlf)
			if len(rest) < whole {
				return used, stands, nil
			}
			r.out = append(append(append(r.out, "PUB "...), inbox...), r.reply...)
			used += whole
			continue
		case "PING":
			r.out = append(r.out, pong...)
		case "PONG":
			stands = true
		case "INFO":
		default:
			return used, stands, fmt.Errorf("cannot take %q", line)
		}
		used += end + len(crlf)
	}
}

// message returns the subject that awaits the reply and the size of the payload: MSG <subject>
// <sid> <reply-to> <#bytes>.
func message(line []byte) (inbox []byte, size int, err error) {
	last := bytes.LastIndexByte(line, ' ')
	first := bytes.LastIndexByte(line[:max(last, 0)], ' ')
	if bytes.Count(line, []byte(" ")) != 4 {
		return nil, 0, fmt.Errorf("cannot answer %q: no reply subject", line)
	}
	if size, err = strconv.Atoi(string(line[last+1:])); err != nil || size < 0 {
		return nil, 0, fmt.Errorf("cannot read the size in %q", line)
	}
	return line[first+1 : last], size, nil
}
