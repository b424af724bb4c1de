package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"trunkline/engine/obs"
	"trunkline/handlers/ops"
)

// TestProjectsOverWebSocket: a client opens a project, the admin listener shows it, its connection
// follows it, and both are closed when the server ends.
func TestProjectsOverWebSocket(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	i := start(t, "exacta.ws_addr=127.0.0.1:0", "exacta.listen_addr=")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	dial := func(addr, path string) *websocket.Conn {
		t.Helper()
		c, _, err := websocket.Dial(ctx, "ws://"+addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.CloseNow() })
		return c
	}
	ask := func(c *websocket.Conn, text, want string) (answer string) {
		t.Helper()
		if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
		for !strings.Contains(answer, want) {
			_, got, err := c.Read(ctx)
			if err != nil {
				t.Fatalf("%v after %s", err, answer)
			}
			answer = string(got)
		}
		return answer
	}
	const envelope = `{"ipc_version":"1.0","request_id":"00000000-0000-4000-8000-000000000001","sent_at":"2026-01-15T00:00:00Z",`
	client := dial(i.addr("exacta websocket"), "/exacta/v1/ws")
	answer := ask(client, envelope+fmt.Sprintf(`"type":"request","command":"OpenProject","payload":{"path":%q}}`, root), `"ok":true`)
	var opened struct {
		Result struct {
			ProjectID string `json:"project_id"`
		}
	}
	if err := json.Unmarshal([]byte(answer), &opened); err != nil {
		t.Fatal(err)
	}
	if status, body := i.get("/exacta/projects"); status != 200 || !strings.Contains(body, opened.Result.ProjectID) {
		t.Errorf("%d %s, want project %s", status, body, opened.Result.ProjectID)
	}
	_, page := i.get("/exacta/")
	_, without, _ := strings.Cut(page, "<noscript>") // what is shown without JavaScript has a way on, and one back
	without, _, _ = strings.Cut(without, "</noscript>")
	for href, in := range map[string]string{"../console/projects": without, "projects": without, "../console/": page} {
		at, _ := url.Parse("/exacta/")
		if status, body := i.get(at.JoinPath(href).Path); status != 200 || !strings.Contains(in, `href="`+href+`"`) {
			t.Errorf("%s: %d %.200s; linked from %s", href, status, body, in)
		}
	}
	if status, body := i.get("/exacta/"); status != 200 || !strings.Contains(body, `src="page.js"`) {
		t.Errorf("%d %s, want the page", status, body)
	}
	viewer := dial(i.addr("admin"), "/exacta/ws")
	ask(viewer, envelope+`"type":"subscribe","project_id":"`+opened.Result.ProjectID+`","after_stream_seq":0}`, `"stream_seq":1`)
	ask(viewer, envelope+`"type":"request","command":"CloseProject","payload":{"project_id":"`+opened.Result.ProjectID+`"}}`, `"code":"CFG-002"`)
	var l ops.Connections
	i.load("/connections?protocol=exacta", &l)
	if l.Total != 2 || l.Connections[0].ID != "exacta-viewer-1" || l.Connections[1].ID != "exacta-websocket-1" || l.Connections[1].Listener != i.addr("exacta websocket") {
		t.Errorf("%+v", l)
	}

	ended := make(chan error, 2)
	var o obs.Overview
	if i.load("/overview", &o); o.Connections["exacta"] != 2 || o.BytesOut == 0 {
		t.Errorf("the overview has %v, %d bytes out", o.Connections, o.BytesOut)
	}
	for _, c := range []*websocket.Conn{client, viewer} {
		go func() {
			for {
				if _, _, err := c.Read(ctx); err != nil {
					ended <- err
					return
				}
			}
		}()
	}
	if err := i.end(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-ended; websocket.CloseStatus(err) != websocket.StatusGoingAway {
			t.Errorf("%v, want 1001", err)
		}
	}
}

// TestNoProjects: without an address there is no page.
func TestNoProjects(t *testing.T) {
	i := start(t, "exacta.ws_addr=", "exacta.listen_addr=")
	if status, _ := i.get("/exacta/projects"); status != 404 {
		t.Errorf("%d, want 404", status)
	}
}
