package mcp

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"trunkline/codec/jsonx"
	"trunkline/handlers/threads/method"
)

// A thread is the resource with its identifier behind threadScheme (threads §4.12).
const (
	threadScheme   = "thread://"
	threadTemplate = threadScheme + "{thread_id}"
	jsonMedia      = "application/json"
	// resourceMessages is how many of the latest messages a resource shows.
	resourceMessages = 50
)

// addResources offers threads as resources: those of the caller are listed, and any that it may
// read can be read.
func addResources(s *sdk.Server, rows []method.Row) {
	list, get, read := rowOf(rows, []byte(method.List)), rowOf(rows, []byte(method.Get)), rowOf(rows, []byte(method.Read))
	if list == nil || get == nil || read == nil {
		return
	}
	s.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "thread", Title: "Thread", URITemplate: threadTemplate, MIMEType: jsonMedia,
		Description: fmt.Sprintf("A thread as get_thread shows it, with its last %d messages.", resourceMessages),
	}, func(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		to := ctx.Value(transportKey{}).(transport)
		id := strings.TrimPrefix(r.Params.URI, threadScheme)
		thread, failed := to.call(nil, get, jsonx.Build(nil).Text("thread_id", id).End(), false)
		if failed {
			return nil, sdk.ResourceNotFoundError(r.Params.URI)
		}
		var latest [1]jsonx.Value
		jsonx.Pick(thread, []string{"latest_seq"}, latest[:])
		n, _ := jsonx.ParseInt(latest[0].Raw)
		page, failed := to.call(nil, read,
			jsonx.Build(nil).Text("thread_id", id).Int("since_seq", max(0, n-resourceMessages)).End(), false)
		if failed {
			return nil, sdk.ResourceNotFoundError(r.Params.URI)
		}
		text := jsonx.Build(nil).Raw("thread", thread).Raw("page", page).End()
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{
			{URI: r.Params.URI, MIMEType: jsonMedia, Text: string(text)},
		}}, nil
	})
	s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, name string, r sdk.Request) (sdk.Result, error) {
			result, err := next(ctx, name, r)
			listed, ok := result.(*sdk.ListResourcesResult)
			if !ok || err != nil {
				return result, err
			}
			args := noArguments
			if p, ok := r.GetParams().(*sdk.ListResourcesParams); ok && p != nil && p.Cursor != "" {
				args = jsonx.Build(nil).Text("cursor", p.Cursor).End()
			}
			text, failed := ctx.Value(transportKey{}).(transport).call(nil, list, args, false)
			if failed {
				return result, nil
			}
			listThreads(listed, text)
			return listed, nil
		}
	})
}

// listThreads adds the threads of an answer of list_threads to a list of resources.
func listThreads(to *sdk.ListResourcesResult, answer []byte) {
	var m [2]jsonx.Value
	jsonx.Pick(answer, []string{"threads", "next_cursor"}, m[:])
	for threads := jsonx.OpenArray(m[0].Raw); ; {
		v, ok := threads.Next()
		if !ok {
			break
		}
		var t [2]jsonx.Value
		jsonx.Pick(v.Raw, []string{"thread_id", "title"}, t[:])
		id := textOf(&t[0])
		to.Resources = append(to.Resources, &sdk.Resource{
			URI: threadScheme + id, Name: id, Title: textOf(&t[1]), MIMEType: jsonMedia,
		})
	}
	to.NextCursor = textOf(&m[1])
}

// textOf returns the text of a string, empty for anything else.
func textOf(v *jsonx.Value) string {
	if v.Kind != jsonx.String {
		return ""
	}
	return string(jsonx.Unescape(v.Raw[1 : len(v.Raw)-1]))
}

// prompts are what people start an agent in a thread with. {thread_id} is the argument.
var prompts = []struct{ name, title, help, text string }{
	{
		"join_thread", "Join a thread", "Take part in a thread: read it, answer, and wait for more.",
		`Take part in the thread {thread_id}.
1. Call get_thread and summarize_thread to learn what it is about and who takes part.
2. Call read_messages from since_seq 0, or from last_read_seq of get_thread if you were here before, until has_more is false; ack_read the last seq.
3. Where you are asked, or can help, answer with post_message: kind chat, in_reply_to the message_id, and an idempotency_key of your own that you repeat when you try again.
4. Wait with read_messages, since_seq the last next_seq and wait_ms 30000; repeat while messages is empty.
5. Stop when the thread is resolved or closed, or when you are told to.`,
	}, {
		"review_loop", "Review in a thread", "Review a change in a thread until its findings are fixed.",
		`Review the change that is discussed in the thread {thread_id} until its findings are fixed.
1. Read the thread with summarize_thread and read_messages.
2. Post each finding with post_message: kind event, metadata {"event_type":"finding_reported","finding_id":"F1","severity":"high|medium|low","file":…,"line":…}, one finding a message.
3. Wait with read_messages and wait_ms 30000. For each fix_pushed read the change again, then post finding_verified or finding_rejected with its finding_id.
4. When summarize_thread has no open_items, call update_thread_status with resolved and the reason. If three rounds bring nothing new, set it to blocked with the reason.`,
	},
}

func addPrompts(s *sdk.Server) {
	for _, p := range prompts {
		s.AddPrompt(&sdk.Prompt{Name: p.name, Title: p.title, Description: p.help,
			Arguments: []*sdk.PromptArgument{
				{Name: "thread_id", Title: "Thread", Description: "The id of the thread.", Required: true},
			}},
			func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
				text := strings.ReplaceAll(p.text, "{thread_id}", r.Params.Arguments["thread_id"])
				return &sdk.GetPromptResult{Description: p.help, Messages: []*sdk.PromptMessage{
					{Role: "user", Content: &sdk.TextContent{Text: text}},
				}}, nil
			})
	}
}
