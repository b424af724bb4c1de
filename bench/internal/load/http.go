//go:build linux

package load

import (
	"bytes"
	"fmt"
)

// AppendPost appends a POST of a JSON body on a connection that is kept, with more fields of its
// header.
func AppendPost(dst []byte, path string, body []byte, fields ...string) []byte {
	dst = fmt.Appendf(dst, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", path, len(body))
	for _, f := range fields {
		dst = append(append(dst, f...), crlf...)
	}
	return append(append(dst, crlf...), body...)
}

var (
	httpOK        = []byte("HTTP/1.1 200 ")
	headEnd       = []byte("\r\n\r\n")
	contentLength = []byte("Content-Length: ")
	nodesLength   = []byte("content-length: ") // as programs on node write it
)

// parseHTTP returns the size of the reply b begins with; ok is false with a nil error when more
// bytes are needed. Any status but 200 and a reply without Content-Length are errors: the servers
// measured give neither.
func parseHTTP(b []byte) (size int, ok bool, err error) {
	end := bytes.Index(b, headEnd)
	if end < 0 {
		return 0, false, nil
	}
	head := b[:end+len(crlf)]
	if !bytes.HasPrefix(head, httpOK) {
		line, _, _ := bytes.Cut(head, crlf)
		return 0, false, fmt.Errorf("cannot take the reply %q: %q", line, b[end+len(headEnd):])
	}
	at := bytes.Index(head, contentLength)
	if at < 0 {
		at = bytes.Index(head, nodesLength)
	}
	if at < 0 {
		return 0, false, fmt.Errorf("cannot take a reply without Content-Length")
	}
	digits := head[at+len(contentLength):]
	n, err := bulkLength(digits[:bytes.IndexByte(digits, '\r')])
	if err != nil {
		return 0, false, err
	}
	size = end + len(headEnd) + n
	return size, len(b) >= size, nil
}
