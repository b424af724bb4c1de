package mcp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"trunkline/handlers/threads/method"
)

// bearerClient adds a token to each request.
type bearerClient struct{ http.RoundTripper }

func (b bearerClient) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer good")
	return b.RoundTripper.RoundTrip(r)
}

// TestOfficialClient speaks through the client of the SDK, in each revision that it has.
func TestOfficialClient(t *testing.T) {
	s := start(t, Config{})
	for _, version := range sdk.SupportedProtocolVersions() {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
		session, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: bearerClient{transport}}, MaxRetries: -1},
			&sdk.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		hello := session.InitializeResult()
		if hello.ProtocolVersion != version || hello.ServerInfo.Name != "threads" || hello.Capabilities.Tools == nil || hello.Capabilities.Logging != nil {
			t.Errorf("%s: the server is %+v", version, hello)
		}
		list, err := session.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != len(method.Rows) {
			t.Errorf("%s: tools %v, %v", version, list, err)
		}
		r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "get_thread", Arguments: map[string]any{"thread_id": "x"}})
		if err != nil || r.IsError || !strings.Contains(fmt.Sprint(r.StructuredContent), "method:get_thread") {
			t.Errorf("%s: %+v, %v", version, r, err)
		}
		r, err = session.CallTool(t.Context(), &sdk.CallToolParams{Name: "get_thread"})
		if err != nil || !r.IsError || r.StructuredContent != nil || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, "VALIDATION_ERROR") {
			t.Errorf("%s: %+v, %v", version, r, err)
		}
		_, err = session.CallTool(t.Context(), &sdk.CallToolParams{Name: "nope"})
		var no *jsonrpc.Error
		if !errors.As(err, &no) || no.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%s: an unknown tool: %v", version, err)
		}
		if err := session.Close(); err != nil {
			t.Errorf("%s: %v", version, err)
		}
		transport.CloseIdleConnections()
	}
}
