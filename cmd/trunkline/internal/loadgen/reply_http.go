package loadgen

import (
	"bytes"
	"strconv"
)

// responses reads HTTP/1.1 responses, which come in request order (RFC 9112).
type responses struct {
	code     [16]byte
	searched int // bytes in which no end of the header was found
}

// maxHeader bounds the header of a response, in bytes.
const maxHeader = 64 << 10

func (h *responses) next(in []byte, r *reply) (n, need int, err error) {
	end := bytes.Index(in[h.searched:], []byte("\r\n\r\n"))
	if end < 0 {
		if len(in) > maxHeader {
			return 0, 0, errTooLarge
		}
		h.searched = max(len(in)-3, 0)
		return 0, len(in) + 1, nil
	}
	end += h.searched + 4
	m, err := h.read(in[:end], r)
	if err != nil {
		return 0, 0, err
	}
	switch {
	case m.chunked:
		n, need, err = chunked(in, end)
	case m.length < 0:
		h.searched = 0
		return 0, len(in) + 1, nil
	case m.length > maxReply-end:
		err = errTooLarge
	default:
		n, need = end+m.length, end+m.length
	}
	if err != nil {
		return 0, 0, err
	}
	if n == 0 || n > len(in) {
		return 0, need, nil
	}
	h.searched = 0
	return n, 0, nil
}

// framing is how the end of a body is found.
type framing struct {
	length  int // -1: the end of the connection
	chunked bool
}

// read takes the status and what the header holds about the body.
func (h *responses) read(header []byte, r *reply) (m framing, err error) {
	*r = reply{}
	const version = "HTTP/1."
	if len(header) < len("HTTP/1.1 200") || string(header[:len(version)]) != version || header[8] != ' ' {
		return m, errMalformed
	}
	status, ok := number(header[9:12])
	if !ok || status < 100 {
		return m, errMalformed
	}
	r.final = header[7] == '0'
	r.ok = status >= 200 && status < 300
	if !r.ok {
		r.code = strconv.AppendInt(append(h.code[:0], "HTTP "...), int64(status), 10)
	}
	m.length = -1
	for rest := header; ; {
		var line []byte
		if _, rest, ok = bytes.Cut(rest, []byte("\r\n")); !ok || len(rest) == 0 {
			break
		}
		line, _, _ = bytes.Cut(rest, []byte("\r\n"))
		if err := m.field(line, r); err != nil {
			return m, err
		}
	}
	if status < 200 {
		r.none = true
	}
	if status < 200 || status == 204 || status == 304 {
		m = framing{}
	}
	r.final = r.final || m.length < 0 && !m.chunked
	return m, nil
}

func (m *framing) field(line []byte, r *reply) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	switch {
	case is(name, "content-length"):
		n, ok := number(value)
		if !ok {
			return errMalformed
		}
		m.length = n
	case is(name, "transfer-encoding"):
		m.chunked = is(value, "chunked")
	case is(name, "connection"):
		switch {
		case is(value, "close"):
			r.final = true
		case is(value, "keep-alive"):
			r.final = false
		}
	}
	return nil
}

// is compares without regard to the case of ASCII letters; word is in lower case.
func is(b []byte, word string) bool {
	return len(b) == len(word) && bytes.EqualFold(b, []byte(word))
}

func number(digits []byte) (n int, ok bool) { return parseDigits(digits, 9, 10) }

func hexNumber(digits []byte) (n int, ok bool) { return parseDigits(digits, 7, 16) }

// parseDigits reads a number of at most most digits, without a sign.
func parseDigits(digits []byte, most, base int) (n int, ok bool) {
	if len(digits) > most {
		return 0, false
	}
	u, err := strconv.ParseUint(string(digits), base, 32)
	return int(u), err == nil
}

// chunked finds the end of a chunked body that begins at in[at]; n is 0 if it is not there yet.
func chunked(in []byte, at int) (n, need int, err error) {
	for {
		line, _, found := bytes.Cut(in[at:], []byte("\r\n"))
		if !found {
			return 0, len(in) + 1, nil
		}
		digits, _, _ := bytes.Cut(line, []byte(";"))
		size, ok := hexNumber(bytes.TrimSpace(digits))
		switch {
		case !ok:
			return 0, 0, errMalformed
		case at+size > maxReply:
			return 0, 0, errTooLarge
		}
		at += len(line) + 2
		if size == 0 {
			return trailer(in, at)
		}
		if at += size + 2; at > len(in) {
			return 0, at, nil
		}
	}
}

// trailer finds the empty line behind the last chunk.
func trailer(in []byte, at int) (n, need int, err error) {
	for {
		line, _, found := bytes.Cut(in[at:], []byte("\r\n"))
		if !found {
			return 0, len(in) + 1, nil
		}
		at += len(line) + 2
		if len(line) == 0 {
			return at, 0, nil
		}
	}
}

// end is the end of a body without a length.
func (h *responses) end(in []byte, r *reply) bool {
	at := bytes.Index(in, []byte("\r\n\r\n"))
	if at < 0 {
		return false
	}
	m, err := h.read(in[:at+4], r)
	return err == nil && !m.chunked && m.length < 0
}
