package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"trunkline/codec/jsonx"
	"trunkline/handlers/threads/method"
)

// What the server is called. The version is that of the threads protocol (threads §6).
const (
	serverName    = "threads"
	serverVersion = "1"
)

// listTTL is how long clients may keep the list of tools, in milliseconds.
const listTTL = 3_600_000

// newSDK returns a handler of the SDK with a tool for each row. The context of its requests has the
// transport under transportKey. listens: clients of the newest revision are offered
// subscriptions/listen.
func newSDK(rows []method.Row, listens bool) http.Handler {
	old, latest := newServer(rows, false), newServer(rows, listens)
	return sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		if r.Header.Get("Mcp-Protocol-Version") == newEra {
			return latest
		}
		return old
	}, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, DisableLocalhostProtection: true, Logger: slog.New(slog.DiscardHandler),
	})
}

func newServer(rows []method.Row, listens bool) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: serverName, Version: serverVersion}, &sdk.ServerOptions{
		Logger:       slog.New(slog.DiscardHandler), // the SDK's lines may have what clients send
		Instructions: method.Instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Prompts: &sdk.PromptCapabilities{},
			Resources: &sdk.ResourceCapabilities{Subscribe: listens}},
		SetCacheable: func(_ context.Context, r sdk.Request, c *sdk.Cacheable) {
			switch r.(type) {
			case *sdk.ListResourcesRequest, *sdk.ReadResourceRequest:
				c.TTLMs, c.CacheScope = 0, "private"
			default:
				c.TTLMs, c.CacheScope = listTTL, "public"
			}
		},
	})
	for i := range rows {
		row := &rows[i]
		s.AddTool(tool(row), func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return result(ctx.Value(transportKey{}).(transport).call(nil, row, arguments(r.Params.Arguments), false)), nil
		})
	}
	addResources(s, rows)
	addPrompts(s)
	return s
}

// arguments are those of a call, which may leave them out.
func arguments(args json.RawMessage) []byte {
	if len(args) == 0 || string(args) == "null" {
		return noArguments
	}
	return args
}

// tool describes a method as a tool.
func tool(r *method.Row) *sdk.Tool {
	return &sdk.Tool{
		Name: r.Name, Title: r.Title, Description: r.Help,
		InputSchema: json.RawMessage(r.InputSchema()), OutputSchema: json.RawMessage(r.OutputSchema()),
		Annotations: &sdk.ToolAnnotations{
			ReadOnlyHint: r.ReadOnly, IdempotentHint: r.Idempotent, DestructiveHint: &r.Destructive, OpenWorldHint: &r.OpenWorld,
		},
	}
}

// result is the answer to a tool call. An envelope is no structured content: clients check that
// against the schema of the result.
func result(text []byte, failed bool) *sdk.CallToolResult {
	r := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, IsError: failed}
	if !failed {
		r.StructuredContent = json.RawMessage(text)
	}
	return r
}

// offered reports whether a method of MCP is served. The SDK knows others, which belong to
// capabilities that are not there.
func offered[T string | []byte](name T) bool {
	switch string(name) {
	case "initialize", "ping", "server/discover", "tools/list", "tools/call", "prompts/list", "prompts/get",
		"resources/list", "resources/templates/list", "resources/read":
		return true
	}
	return false
}

// notFound is the message of a method of MCP that is not served.
const notFound = "method not found"

// metadataPath is where clients find which issuers the server trusts (RFC 9728).
const metadataPath = "/.well-known/oauth-protected-resource/mcp"

// Metadata answers with the description of the protected resource (threads §4.10). It is nil
// without issuers: then there is nothing to describe. Without a URL it is 404 with the reason.
func Metadata(publicURL string, authServers []string) http.Handler {
	if len(authServers) == 0 {
		return nil
	}
	body := jsonx.Build(nil).Text("resource", resource(publicURL)).Texts("authorization_servers", authServers).
		Texts("bearer_methods_supported", []string{"header"}).Text("resource_name", serverName).End()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		if r.Method == http.MethodOptions { // clients in a browser send headers of MCP
			h["Access-Control-Allow-Headers"], h["Access-Control-Max-Age"] = corsHeaders, corsMaxAge
			h.Set("Access-Control-Allow-Methods", "GET, HEAD")
			h.Set("Allow", "GET, HEAD, OPTIONS")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD, OPTIONS")
			http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
			return
		}
		if publicURL == "" {
			http.Error(w, "there is no description of the protected resource: threads.public_url is not set", http.StatusNotFound)
			return
		}
		h.Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	})
}

// resource returns the address of MCP below a public URL.
func resource(publicURL string) string { return strings.TrimRight(publicURL, "/") + "/mcp" }

// MetadataURL returns the address of the description of the resource, which a 401 names; empty
// where Metadata is nil.
func MetadataURL(publicURL string, authServers []string) string {
	if publicURL == "" || len(authServers) == 0 {
		return ""
	}
	return strings.TrimRight(publicURL, "/") + metadataPath
}
