package web

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"

	"trunkline/engine/stream"
	"trunkline/handlers/exacta"
)

// viewerPath is below what a Viewer answers.
const viewerPath = "/exacta/"

// Limits of viewers. Their connections are among those of the listener that they are mounted on.
const (
	maxViewers      = 32
	maxViewerBytes  = 64 << 10
	contentSecurity = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
		"frame-ancestors 'none'; require-trusted-types-for 'script'"
)

//go:embed page
var page embed.FS

// listed is an open project as the list shows it.
type listed struct {
	ID     string `json:"project_id"`
	Root   string `json:"project_root"`
	State  string `json:"state"`
	Oldest uint64 `json:"oldest_stream_seq"` // of the first event that is kept
	Last   uint64 `json:"last_stream_seq"`   // of the last one
}

// Viewer is a page that shows projects, for the admin listener:
//
//	GET /exacta/          the page
//	GET /exacta/projects  the open projects, as JSON
//	GET /exacta/ws        a WebSocket with sessions of exacta.Viewer
//
// It answers only under an address, a name of this machine, or that of one of the WSOrigins, so
// that no page from elsewhere can read it by way of a name of its own.
type Viewer struct {
	srv     *exacta.Server
	sockets *sockets
	mux     http.ServeMux
}

// NewViewer returns a viewer of srv. Shutdown ends it.
func NewViewer(srv *exacta.Server) *Viewer {
	c := configOf(srv, exacta.Viewer, viewerPath+"ws")
	c.same, c.messageBytes, c.maxConnections = true, maxViewerBytes, maxViewers
	v := &Viewer{srv: srv, sockets: newSockets(c)}
	files, _ := fs.Sub(page, "page") // the name is valid
	v.mux.Handle(viewerPath, http.StripPrefix(viewerPath, http.FileServerFS(files)))
	v.mux.HandleFunc(viewerPath+"projects", v.list)
	v.mux.Handle(viewerPath+"ws", v.sockets)
	return v
}

// Clients are the WebSockets.
func (v *Viewer) Clients() *stream.Host { return v.sockets.host }

// ServeHTTP implements http.Handler.
func (v *Viewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !v.sockets.cfg.names(r) {
		http.Error(w, "this name is not that of the server: add its origin to exacta.ws_origins", http.StatusMisdirectedRequest)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", contentSecurity)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	v.mux.ServeHTTP(w, r)
}

func (v *Viewer) list(w http.ResponseWriter, _ *http.Request) {
	list := []listed{}
	for _, p := range v.srv.Projects() {
		list = append(list, listed{p.ID, p.Root, p.State.String(), p.Oldest, p.Last})
	}
	w.Header().Set("Content-Type", "application/json")
	// An error is dropped: the peer is gone.
	_ = json.NewEncoder(w).Encode(struct {
		Projects []listed `json:"projects"`
	}{list})
}

// Shutdown closes all connections, at the latest when ctx ends.
func (v *Viewer) Shutdown(ctx context.Context) error { return v.sockets.shutdown(ctx) }
