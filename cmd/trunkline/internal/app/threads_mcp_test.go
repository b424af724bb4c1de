package app

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"trunkline/handlers/threads/bridge"
	"trunkline/handlers/threads/token"
)

// withToken adds a token to each request.
type withToken struct {
	http.RoundTripper
	token string
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.RoundTripper.RoundTrip(r)
}

// TestThreadsOverMCP runs the methods through official clients of both eras, over HTTP and through
// a bridge. What one writes, all others read.
func TestThreadsOverMCP(t *testing.T) {
	private, public, err := token.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, public, 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	text, err := token.Sign(private, &token.Claims{Agent: "lead", Workspace: "wk", Session: "s", ID: "j", Role: token.Coordinator, Issued: float64(now), Expires: float64(now + 3600)},
		"https://issuer.example", token.DefaultAudience)
	if err != nil {
		t.Fatal(err)
	}
	i := start(t, "threads.public_key_file="+key, "threads.issuer=https://issuer.example", "threads.listen_addr=127.0.0.1:0", "threads.lines_addr=", "threads.public_url=https://x.example")
	base := "http://" + i.addr("threads http")
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()

	id, posts := "", 0
	use := func(name string, via sdk.Transport, version string) {
		t.Helper()
		c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), via, &sdk.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatalf("%s %s: %v", name, version, err)
		}
		defer c.Close()
		call := func(tool string, args map[string]any) map[string]any {
			t.Helper()
			r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
			if err != nil || r.IsError {
				b, _ := json.Marshal(r)
				t.Fatalf("%s %s: %s: %v %s", name, version, tool, err, b)
			}
			return r.StructuredContent.(map[string]any)
		}
		if id == "" {
			id = call("create_thread", map[string]any{"workspace_id": "wk", "title": "t", "type": "workflow", "participants": []string{"lead"}})["thread_id"].(string)
		}
		call("post_message", map[string]any{"thread_id": id, "schema_version": 1, "kind": "chat", "body": name + version + " <&>\u2028"})
		posts++
		got := call("read_messages", map[string]any{"thread_id": id})["messages"].([]any)
		if len(got) != posts || got[posts-1].(map[string]any)["body"] != name+version+" <&>\u2028" {
			t.Errorf("%s %s: the messages are %v", name, version, got)
		}
		if r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "get_thread", Arguments: map[string]any{"thread_id": "th_none"}}); err != nil || !r.IsError ||
			!strings.Contains(r.Content[0].(*sdk.TextContent).Text, `"code":"NOT_FOUND"`) {
			t.Errorf("%s %s: %+v, %v", name, version, r, err)
		}
	}
	for _, version := range sdk.SupportedProtocolVersions() {
		use("http", &sdk.StreamableClientTransport{Endpoint: base + "/mcp", HTTPClient: &http.Client{Transport: withToken{transport, text}}, MaxRetries: -1}, version)
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			err := bridge.Run(t.Context(), inR, outW, bridge.Config{URL: base, Token: func() (string, error) { return text, nil }})
			outW.Close()
			ended <- err
		}()
		use("stdio", &sdk.IOTransport{Reader: outR, Writer: inW}, version)
		inW.Close()
		if err := <-ended; err != nil {
			t.Errorf("the bridge ended with %v", err)
		}
	}
	for name, errors := range map[string]int{"post_message": 0, "read_messages": 0, "get_thread": posts} {
		i.awaitRow("threads "+name, uint64(posts), uint64(errors))
	}

	resp, err := (&http.Client{Transport: transport}).Get(base + "/.well-known/oauth-protected-resource")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 || !strings.Contains(string(body), `"resource":"https://x.example/mcp","authorization_servers":["https://issuer.example"]`) {
		t.Errorf("%d %s, %v", resp.StatusCode, body, err)
	}
	resp, err = (&http.Client{Transport: transport}).Post(base+"/mcp", "application/json", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 401 || !strings.Contains(resp.Header.Get("WWW-Authenticate"), `resource_metadata="https://x.example/.well-known/oauth-protected-resource/mcp"`) {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	if err := i.end(); err != nil {
		t.Error(err)
	}
}
