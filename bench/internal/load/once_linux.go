package load

import "fmt"

// SendOnce sends every tape once at the given depth and waits for all replies.
func SendOnce(addr string, p Protocol, tapes []*Tape, depth int) error {
	s, err := Start(Config{Addr: addr, Protocol: p, Tapes: tapes, Depth: depth, Once: true})
	if err != nil {
		return err
	}
	_, err = s.Wait()
	return err
}

// AppendPost appends a POST of a JSON body on a connection that is kept, with more fields of its
// header.
func AppendPost(dst []byte, path string, body []byte, fields ...string) []byte {
	dst = fmt.Appendf(dst,
		"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", path, len(body))
	for _, f := range fields {
		dst = append(append(dst, f...), "\r\n"...)
	}
	return append(append(dst, "\r\n"...), body...)
}
