package exchange

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"trunkline/engine/connection"
	"trunkline/handlers/internal/httpd"
)

// conn is a connection as net/http sees it. It replaces the answers of net/http to requests it
// cannot parse.
type conn struct {
	*httpd.Conn
	s *Server

	// These belong to net/http's reader of this connection, which is one goroutine at a time.
	serving bool // a request's head is complete and its reply is not
	heard   bool // something of the next head has come
	ended   bool // the last reply is out
}

// setState follows net/http through a connection's requests.
func setState(c net.Conn, state http.ConnState) {
	if c, ok := c.(*conn); ok && (state == http.StateActive || state == http.StateIdle) {
		c.serving, c.heard = state == http.StateActive, false
	}
}

// Read passes bytes on. A peer that is too slow with its headers gets an answer before net/http
// closes the connection, unless it has sent nothing.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	switch {
	case c.serving:
	case n > 0:
		c.heard = true
	case c.heard && errors.Is(err, os.ErrDeadlineExceeded):
		_ = c.SetWriteDeadline(time.Now().Add(c.s.cfg.WriteTimeout))
		_ = c.sendLast(http.StatusRequestTimeout, &c.s.refusals.slowHead)
	}
	return n, err
}

// Write passes replies on. The fixed answer to a request that never reached the handler is plain
// text without a length. It is replaced by an error object with the same status (envelope §2.3:
// every reply is JSON).
func (c *conn) Write(p []byte) (int, error) {
	status, detail, fixed := parseFixed(p)
	if !fixed {
		return c.Conn.Write(p)
	}
	no := malformed(detail)
	if status == http.StatusRequestHeaderFieldsTooLarge {
		no = c.s.refusals.headers
	}
	if err := c.sendLast(status, &no); err != nil {
		return 0, err
	}
	return len(p), nil
}

// sendLast sends the connection's last reply, unless it was sent already.
func (c *conn) sendLast(status int, no *refusal) error {
	if c.ended {
		return nil
	}
	c.ended = true
	c.LingerAtEnd()
	c.s.count(status)
	began := c.Began()
	_, err := c.Conn.Write(appendReply(nil, status, no.append(nil)))
	c.s.meter.Record(rowInvalid, connection.Mono()-began, 1, 1, c)
	return err
}

const (
	statusLine  = "HTTP/1.1 400 " // its length is what counts
	textHeaders = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
	noExpect    = "HTTP/1.1 417 Expectation Failed\r\n"
)

// parseFixed recognises the answers that net/http writes without a handler, each in one write:
// status and text. A piece of our own replies never matches: JSON has no "HTTP" outside of strings
// and no line ends inside.
func parseFixed(p []byte) (status int, detail string, fixed bool) {
	if len(p) < len(statusLine) || string(p[:7]) != statusLine[:7] {
		return 0, "", false
	}
	if bytes.HasPrefix(p, []byte(noExpect)) {
		return http.StatusExpectationFailed, "unknown expectation", true
	}
	_, text, fixed := bytes.Cut(p, []byte(textHeaders))
	if !fixed {
		return 0, "", false
	}
	status, err := strconv.Atoi(string(p[9:12]))
	if err != nil {
		return 0, "", false
	}
	if _, detail, ok := bytes.Cut(text, []byte(": ")); ok {
		return status, string(detail), true
	}
	if status == http.StatusNotImplemented {
		return status, "unsupported transfer encoding", true
	}
	return status, "", true
}

func appendReply(dst []byte, status int, body []byte) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(append(dst, ' '), http.StatusText(status)...)
	dst = append(dst, "\r\nContent-Type: application/json\r\nConnection: close\r\nDate: "...)
	dst = time.Now().UTC().AppendFormat(dst, http.TimeFormat)
	dst = append(dst, "\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(body)), 10)
	return append(append(dst, "\r\n\r\n"...), body...)
}
