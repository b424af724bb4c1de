package web

import (
	"net/http"
	"strings"

	"trunkline/handlers/internal/httpd"
	"trunkline/handlers/threads/method"
)

// mounted lets a handler of another package answer.
func (x *exchange) mounted() {
	w := &mountedWriter{ResponseWriter: x.w, x: x}
	httpd.ReadWithin(x.w, x.s.limits.BodyTimeout)
	x.w.Header()[headRequestID] = x.idValue
	x.route.mount.ServeHTTP(w, x.r)
	if x.status == 0 {
		x.status = http.StatusOK // net/http writes it
	}
}

// mountedWriter is what a mounted handler writes to. It sees the status.
type mountedWriter struct {
	http.ResponseWriter
	x *exchange
}

// WriteHeader passes the status on.
func (w *mountedWriter) WriteHeader(status int) {
	x := w.x
	if x.status != 0 || status < http.StatusOK {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	x.status = status
	httpd.WriteWithin(x.w, x.s.limits.WriteTimeout)
	w.ResponseWriter.WriteHeader(status)
}

// Write passes the body on.
func (w *mountedWriter) Write(p []byte) (int, error) {
	if w.x.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// Flush sends what was written.
func (w *mountedWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (w *mountedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// forward lets Config.Forward answer.
func (x *exchange) forward() {
	text := ""
	if x.path == mcpPath || x.path == mcpPath+"/" || strings.HasPrefix(x.path, tokenPrefix) {
		text, _ = method.Bearer(x.r.Header["Authorization"])
	}
	ended := false
	defer func() {
		// The client has to see an answer behind which the connection ends.
		if _, closing := x.w.Header()["Connection"]; x.status != 0 && (closing || !ended) {
			httpd.Linger(x.r)
		}
	}()
	f := x.s.cfg.Forward.Forward(&mountedWriter{ResponseWriter: x.w, x: x}, x.r, text)
	if ended = true; f != nil {
		x.refuse(f)
	}
}
