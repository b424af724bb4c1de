package proxy

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"time"
)

// bodyWithin is how long the body of a request may take. The limit of the owner is shorter.
const bodyWithin = 45 * time.Second

// exchange is a request on its way to an owner, and its answer.
type exchange struct {
	w       *Web
	leg     *leg
	to      http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	proceed chan struct{} // gets a value when the owner asks for the body; nil: it need not
	sent    chan struct{} // closed when nothing more of the request is sent
	whole   bool          // all of it was; for what has seen sent closed
}

// run sends the request and passes the answer on. again: the leg is watched, and may serve another
// request; else it is closed. It panics with http.ErrAbortHandler where the connection of the
// client has to end.
func (x *exchange) run() (again bool) {
	defer x.hurry()()
	if x.r.ContentLength != 0 {
		_ = x.control.EnableFullDuplex() // the answer may come before the end of the body
		x.allow(bodyWithin)
		if x.r.Header.Get("Expect") != "" && x.r.ProtoAtLeast(1, 1) {
			x.proceed = make(chan struct{}, 1)
		}
		go x.send()
	} else {
		x.send()
	}
	res, err := x.receive()
	if err != nil || x.leg.owned.Err() != nil {
		x.abort()
	}
	maps.Copy(x.to.Header(), res.Header)
	if res.Close {
		x.to.Header()["Connection"] = closes
	}
	x.to.WriteHeader(res.StatusCode)
	if !x.pass(res) {
		x.abort()
	}
	if res.Close {
		x.cut()
		return false
	}
	x.leg.watch(x.w)
	select {
	case <-x.sent:
	default:
		_ = x.control.Flush()
		select {
		case <-x.sent:
		case <-x.leg.watched: // the owner takes no more
			x.abort()
		}
	}
	if !x.whole {
		_ = x.control.Flush()
		x.abort()
	}
	return true
}

// hurry bounds how long the answer may take once the client is gone, until end, behind which the
// deadlines of the leg are those of watch and wake alone.
func (x *exchange) hurry() (end func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(x.r.Context(), func() {
		_ = x.leg.SetReadDeadline(time.Now().Add(x.w.gone))
		close(done)
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}

// allow gives the client time to send the rest of its body.
func (x *exchange) allow(d time.Duration) { _ = x.control.SetReadDeadline(time.Now().Add(d)) }

// cut closes the leg, and ends what sends the request.
func (x *exchange) cut() {
	x.leg.close()
	x.allow(0)
	<-x.sent
}

// abort ends the connection of the client.
func (x *exchange) abort() {
	x.cut()
	panic(http.ErrAbortHandler)
}

// receive returns the answer.
func (x *exchange) receive() (*http.Response, error) {
	if x.proceed != nil {
		defer close(x.proceed)
	}
	for {
		res, err := http.ReadResponse(x.leg.in, x.r)
		if err != nil || res.StatusCode >= http.StatusOK {
			return res, err
		}
		select {
		case x.proceed <- struct{}{}:
		default:
		}
	}
}

// pass passes the body of an answer on; false: it did not come to its end.
func (x *exchange) pass(res *http.Response) bool {
	buf := x.w.buffers.Get().(*[copyBytes]byte)
	defer x.w.buffers.Put(buf)
	for {
		n, err := res.Body.Read(buf[:])
		if n > 0 {
			if _, err := x.to.Write(buf[:n]); err != nil {
				return false
			}
			if res.ContentLength < 0 {
				_ = x.control.Flush()
			}
		}
		if err != nil {
			return err == io.EOF
		}
	}
}

// closes is a header value, which net/http only reads.
var closes = []string{"close"}

// Header fields that are for one connection alone. One of HTTP/1.0 asks for no 100 Continue.
var (
	ofConnection = map[string]bool{"Connection": true}
	ofHTTP10     = map[string]bool{"Connection": true, "Expect": true}
)

// send sends the request.
func (x *exchange) send() {
	defer close(x.sent)
	r, out := x.r, x.leg.out
	except := ofConnection
	if !r.ProtoAtLeast(1, 1) {
		except = ofHTTP10
	}
	host := r.Host
	if r.URL.Host != "" {
		host = "" // the owner takes it from the target, which may have what no field may
	}
	fmt.Fprintf(out, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Method, r.RequestURI, host)
	if r.ContentLength < 0 {
		_, _ = out.WriteString("Transfer-Encoding: chunked\r\n")
	}
	_ = r.Header.WriteSubset(out, except)
	_, _ = out.WriteString("\r\n")
	if out.Flush() != nil {
		return
	}
	if x.proceed != nil {
		if _, ok := <-x.proceed; !ok {
			return
		}
	}
	x.whole = r.ContentLength == 0 || x.sendBody()
}

// sendBody sends the body as it comes. The owner sees the end of one that breaks off, and answers.
func (x *exchange) sendBody() bool {
	out, chunked := x.leg.out, x.r.ContentLength < 0
	var to io.Writer = out
	if chunked {
		to = httputil.NewChunkedWriter(out)
	}
	buf := x.w.buffers.Get().(*[copyBytes]byte)
	defer x.w.buffers.Put(buf)
	for {
		n, err := x.r.Body.Read(buf[:])
		if n > 0 {
			_, _ = to.Write(buf[:n]) // Flush has its error
			if out.Flush() != nil {
				return false
			}
		}
		switch {
		case err == nil:
			continue
		case err != io.EOF:
			if half, ok := x.leg.Conn.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
			return false
		case chunked:
			_, _ = out.WriteString("0\r\n\r\n")
			return out.Flush() == nil
		}
		return true
	}
}
