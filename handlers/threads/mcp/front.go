package mcp

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"trunkline/handlers/threads/method"
)

// Values of header fields. net/http only reads them.
var (
	jsonType  = []string{"application/json"}
	noCaching = []string{"no-cache, no-transform"} // as the SDK has it
)

// front answers a request that it understands. If it returns false, the request is for the SDK, and
// its body is as if nothing had been read.
func (x *exchange) front(w http.ResponseWriter, r *http.Request) bool {
	newer, ok := ordinary(r)
	if !ok {
		return false
	}
	switch err := x.readBody(r); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header()["Connection"] = []string{"close"}
		http.Error(w, "the body did not come in time", http.StatusRequestTimeout)
		return true
	case err == errCrowded:
		w.Header()["Connection"] = []string{"close"}
		x.refuse(w, method.Crowded)
		return true
	case err != nil:
		return false
	}
	switch x.m.scan(x.in, newer) {
	case toolCall:
		if row := x.h.row(x.m.tool); row != nil && (!newer || named(r.Header, x.m.tool)) {
			var failed bool
			x.text, failed = x.call(x.text[:0], row, x.m.args)
			x.out = appendResult(x.out[:0], &x.m, newer, x.text, failed)
			if len(x.out) > trusted && !x.h.cfg.Pending.Fit(&x.pending, len(x.in)+len(x.text)+len(x.out)) { // of a method that reads
				x.text = x.envelope(x.text[:0], row, method.Crowded)
				x.out = appendResult(x.out[:0], &x.m, newer, x.text, true)
			}
			x.reply(w, http.StatusOK)
			return true
		}
	case unoffered:
		x.refused = true
		x.out = appendNotFound(x.out[:0], &x.m)
		x.reply(w, http.StatusNotFound)
		return true
	case trailing:
		x.refused = true
		http.Error(w, "malformed payload: there is something behind the message", http.StatusBadRequest)
		return true
	}
	r.Body = io.NopCloser(bytes.NewReader(x.in))
	return false
}

// shortReply is how long an answer may be for net/http to add its length.
const shortReply = 2 << 10

// reply sends x.out.
func (x *exchange) reply(w http.ResponseWriter, status int) {
	h := w.Header()
	h["Content-Type"], h["Cache-Control"] = jsonType, noCaching
	if len(x.out) >= shortReply {
		h["Content-Length"] = []string{strconv.Itoa(len(x.out))}
	}
	w.WriteHeader(status)
	_, _ = w.Write(x.out) // an error is dropped: the peer is gone
}

// ordinary reports whether the header of a request is one that the SDK would accept, and whether it
// is of the newest revision.
func ordinary(r *http.Request) (newer, ok bool) {
	h := r.Header
	version := h["Mcp-Protocol-Version"]
	switch {
	case r.Method != http.MethodPost || len(h["Last-Event-Id"]) > 0 || !isJSON(h["Content-Type"]) || !accepts(h["Accept"]) || !isLocal(r):
		return false, false
	case len(version) == 0:
		return false, true
	case len(version) > 1:
		return false, false
	}
	newer = version[0] == newEra
	return newer, newer || isOldEra(version[0])
}

// named reports whether the header names the call of a tool, as the newest revision wants.
func named(h http.Header, tool []byte) bool {
	method, name := h["Mcp-Method"], h["Mcp-Name"]
	return len(method) == 1 && method[0] == "tools/call" && len(name) == 1 && name[0] == string(tool)
}

// isJSON reports whether the type of the body is JSON.
func isJSON(fields []string) bool {
	if len(fields) != 1 {
		return false
	}
	if fields[0] == "application/json" {
		return true
	}
	media, _, err := mime.ParseMediaType(fields[0])
	return err == nil && media == "application/json"
}

// accepts reports whether the client takes both types of answers.
func accepts(fields []string) bool {
	if len(fields) == 1 && fields[0] == "application/json, text/event-stream" {
		return true
	}
	var json, stream bool
	for _, f := range fields {
		for part := range strings.SplitSeq(f, ",") {
			part, _, _ = strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(part)) {
			case "application/json", "application/*":
				json = true
			case "text/event-stream", "text/*":
				stream = true
			case "*/*":
				json, stream = true, true
			}
		}
	}
	return json && stream
}

// isLocal reports that a request to an address on loopback names this machine, so that it is not of
// a page whose name was bound anew.
func isLocal(r *http.Request) bool {
	a, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return !ok || !a.IP.IsLoopback() || namesLoopback(r.Host)
}

// namesLoopback reports whether a Host is this machine, with a port or without.
func namesLoopback(host string) bool {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && host[len(host)-1] != ']' {
		if _, err := strconv.ParseUint(host[i+1:], 10, 16); err != nil {
			return false
		}
		host = host[:i]
	}
	return host == "127.0.0.1" || host == "localhost" || host == "[::1]"
}

// firstBuffer is the first size of the buffer for a body, trusted the largest that a Content-Length
// alone can ask for.
const (
	firstBuffer = 4 << 10
	trusted     = 64 << 10
)

// A body over the limit, and one for which there is no room now.
var (
	errLong    = errors.New("the body is over the limit")
	errCrowded = errors.New("the body does not fit")
)

// readBody reads the body into x.in. If it does not come to its end within the limit, the body is
// put together again for the SDK, which refuses it.
func (x *exchange) readBody(r *http.Request) error {
	if want := int(min(r.ContentLength+1, trusted)); cap(x.in) < want {
		x.in = make([]byte, 0, want)
	}
	x.in = x.in[:0]
	for {
		if len(x.in) == cap(x.in) {
			if !x.h.cfg.Pending.Fit(&x.pending, 2*cap(x.in)) {
				return errCrowded
			}
			x.in = append(make([]byte, 0, max(2*cap(x.in), firstBuffer)), x.in...)
		}
		n, err := r.Body.Read(x.in[len(x.in):min(cap(x.in), maxBody+1)])
		x.in = x.in[:len(x.in)+n]
		switch {
		case err == io.EOF && len(x.in) <= maxBody:
			return nil
		case err != nil && err != io.EOF:
			r.Body = &rejoined{Reader: bytes.NewReader(x.in), rest: r.Body, err: err}
			return err
		case len(x.in) > maxBody:
			r.Body = &rejoined{Reader: bytes.NewReader(x.in), rest: r.Body} // an EOF comes again
			return errLong
		}
	}
}

// rejoined is a body of which a part was read.
type rejoined struct {
	*bytes.Reader
	rest io.ReadCloser
	err  error // of the last read
}

// Read implements io.Reader.
func (b *rejoined) Read(p []byte) (int, error) {
	switch {
	case b.Len() > 0:
		return b.Reader.Read(p)
	case b.err != nil:
		return 0, b.err
	}
	return b.rest.Read(p)
}

// Close implements io.Closer.
func (b *rejoined) Close() error { return b.rest.Close() }
