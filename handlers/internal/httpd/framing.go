package httpd

import (
	"bytes"
	"net/http"
	"sync/atomic"
)

// framing finds heads in which two fields set the end of the body. net/http drops one of the two,
// and the request does not show it.
type framing struct {
	ambiguous atomic.Bool  // a head had both
	codings   atomic.Int32 // lines with Transfer-Encoding, without a request yet

	length, coding bool                           // the lines since the last empty one have the field
	name           [len("transfer-encoding")]byte // of the line that is being read
	n              int
	open           bool   // name is not complete
	unnamed        bool   // the line has no colon so far, and does not go on with the one before
	tail           []byte // the last bytes of an unnamed line
}

// read looks at what a peer has sent; a line may be split between two reads.
func (f *framing) read(p []byte) {
	for {
		if !f.open {
			end := bytes.IndexByte(p, '\n')
			if f.length || f.coding {
				f.rest(p, end)
			}
			if end < 0 {
				return
			}
			p, f.open, f.n = p[end+1:], true, 0
		}
		for f.open {
			if len(p) == 0 {
				return
			}
			f.step(p[0])
			p = p[1:]
		}
	}
}

// rest looks at what is left of a line, which ends at end. One of a head that is no field begins a
// request: what looked like fields before it was a body. net/http refuses such a line elsewhere.
func (f *framing) rest(p []byte, end int) {
	if end >= 0 {
		p = p[:end]
	}
	f.unnamed = f.unnamed && bytes.IndexByte(p, ':') < 0
	if !f.unnamed {
		return
	}
	const version = " HTTP/1.1\r"
	f.tail = append(f.tail, p[max(0, len(p)-len(version)):]...)
	f.tail = f.tail[:copy(f.tail, f.tail[max(0, len(f.tail)-len(version)):])]
	if end >= 0 && bytes.HasSuffix(bytes.TrimSuffix(f.tail, []byte("\r")), []byte(version[:len(version)-1])) {
		f.length, f.coding = false, false
	}
}

// step takes the next byte of a name.
func (f *framing) step(b byte) {
	if f.n == 0 {
		f.unnamed, f.tail = b != ' ' && b != '\t', f.tail[:0]
	}
	switch {
	case b == '\n':
		if f.n == 0 { // the end of a head
			f.length, f.coding = false, false
		}
		f.n = 0
	case b == '\r' && f.n == 0:
	case b == ':':
		f.open, f.unnamed = false, false
		switch name := f.name[:f.n]; {
		case bytes.EqualFold(name, []byte("content-length")):
			f.length = true
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			f.coding = true
			f.codings.Add(1)
		}
		if f.length && f.coding {
			f.ambiguous.Store(true)
		}
	case f.n == len(f.name) || f.n == 0 && b|' ' != 'c' && b|' ' != 't':
		f.open = false
	default:
		f.name[f.n] = b
		f.n++
	}
}

// Ambiguous reports whether the head of a request has both a Content-Length and a
// Transfer-Encoding, or the latter in HTTP/1.0: between two programs that read it differently, a
// part of the body passes for another request (RFC 9112 §6.1). The connection must end then. A
// server calls it once for each request.
func Ambiguous(r *http.Request) bool {
	conn := connOf(r.Context())
	if conn == nil {
		return false
	}
	f := &conn.framing
	if len(r.TransferEncoding) > 0 {
		f.codings.Add(-1)
		return f.ambiguous.Load()
	}
	return !r.ProtoAtLeast(1, 1) && f.codings.Load() > 0
}

// Unambiguous refuses ambiguous requests in plain text, and passes the others on.
func Unambiguous(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Ambiguous(r) {
			w.Header().Set("Connection", "close")
			http.Error(w, TextAmbiguous, http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// TextAmbiguous is the message for it.
const TextAmbiguous = "Content-Length and Transfer-Encoding contradict each other"
