//go:build linux

package load

import (
	"bytes"
	"fmt"
)

// NATSTape makes the requests of connection conn, count of them alike: published to subject with a
// payload of size bytes, and answered to an inbox of the connection's own, the only one it
// subscribes to.
func NATSTape(conn, count int, subject string, size int) *Tape {
	t := &Tape{Hello: fmt.Appendf(nil, "CONNECT {\"verbose\":false,\"pedantic\":false,\"name\":\"load\"}\r\nSUB _INBOX.%d 1\r\n", conn)}
	request := fmt.Appendf(nil, "PUB %s _INBOX.%d %d\r\n%s\r\n", subject, conn, size, bytes.Repeat([]byte{'p'}, size))
	for range count {
		t.Add(0, request)
	}
	return t
}

var (
	natsMessage = []byte("MSG ")
	natsPing    = []byte("PING")
	natsInfo    = []byte("INFO ")
	natsPong    = []byte("PONG\r\n")
)

// splitNATS counts the messages in b. It answers a PING at once, unless a write is not through: the
// server lets two pass.
func splitNATS(_ *worker, c *conn, b []byte) (used, replies int, err error) {
	for {
		rest := b[used:]
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return used, replies, nil
		}
		line := bytes.TrimSuffix(rest[:end], crlf[:1])
		switch end++; {
		case bytes.HasPrefix(line, natsMessage):
			n, err := bulkLength(line[bytes.LastIndexByte(line, ' ')+1:])
			if err != nil {
				return used, replies, err
			}
			if end += n + len(crlf); len(rest) < end {
				return used, replies, nil
			}
			replies++
		case bytes.Equal(line, natsPing):
			if len(c.unsent) == 0 {
				err = c.write(natsPong)
			}
		case !bytes.HasPrefix(line, natsInfo):
			err = fmt.Errorf("cannot take %q", line)
		}
		if err != nil {
			return used, replies, err
		}
		used += end
	}
}
