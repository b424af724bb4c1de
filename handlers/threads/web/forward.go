package web

import "strings"

// forward lets Config.Forward answer.
func (x *exchange) forward() {
	text := ""
	if x.path == mcpPath || x.path == mcpPath+"/" || strings.HasPrefix(x.path, tokenPrefix) {
		text, _ = bearer(x.r.Header["Authorization"])
	}
	ended := false
	defer func() {
		// The client has to see an answer behind which the connection ends.
		if _, closing := x.w.Header()["Connection"]; x.status != 0 && (closing || !ended) {
			x.linger()
		}
	}()
	f := x.s.cfg.Forward.Forward(&mountedWriter{ResponseWriter: x.w, x: x}, x.r, text)
	if ended = true; f != nil {
		x.refuse(f)
	}
}
