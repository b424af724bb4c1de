package mcp

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"trunkline/handlers/threads/method"
)

// What the server is called. The version is that of the threads protocol (threads §6).
const (
	serverName    = "threads"
	serverVersion = "1"
)

// listTTL is how long clients may keep the list of tools, in milliseconds.
const listTTL = 3_600_000

// Call runs a method with args, the text of its arguments. It returns the result, or the error
// envelope and failed.
type Call func(ctx context.Context, row *method.Row, args []byte) (text []byte, failed bool)

// NewServer returns a server of the SDK with a tool for each row.
func NewServer(rows []method.Row, call Call) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: serverName, Version: serverVersion}, &sdk.ServerOptions{
		Logger:       slog.New(slog.DiscardHandler), // the SDK's lines may have what clients send
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) {
			c.TTLMs, c.CacheScope = listTTL, "public"
		},
	})
	for i := range rows {
		row := &rows[i]
		s.AddTool(tool(row), func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return result(call(ctx, row, arguments(r.Params.Arguments))), nil
		})
	}
	s.AddReceivingMiddleware(offeredOnly)
	return s
}

// arguments are those of a call, which may leave them out.
func arguments(args json.RawMessage) []byte {
	if len(args) == 0 {
		return []byte(`{}`)
	}
	return args
}

// tool describes a method as a tool.
func tool(r *method.Row) *sdk.Tool {
	return &sdk.Tool{
		Name: r.Name, Description: r.Help,
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
	case "initialize", "ping", "server/discover", "tools/list", "tools/call":
		return true
	}
	return len(name) > len(notifications) && string(name[:len(notifications)]) == notifications
}

const notifications = "notifications/"

// offeredOnly refuses the methods that are not served.
func offeredOnly(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, name string, r sdk.Request) (sdk.Result, error) {
		if !offered(name) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: notFound}
		}
		return next(ctx, name, r)
	}
}

// notFound is the message of a method of MCP that is not served.
const notFound = "method not found"
