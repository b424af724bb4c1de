package web

import (
	"net/http"
	"time"
)

// mounted lets a handler of another package answer.
func (x *exchange) mounted() {
	w := &mountedWriter{ResponseWriter: x.w, x: x}
	x.allow(x.s.limits.BodyTimeout)
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
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(x.s.limits.WriteTimeout))
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
