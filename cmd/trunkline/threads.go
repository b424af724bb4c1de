package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
)

// threadsHelp is the part of a help text on the server and the token.
const threadsHelp = "The token is that of any role that may: " + envThreadsTokenFile + " is a file with it, or " +
	envThreadsToken + " the token\n" +
	"itself. " + envThreadsURL + " is the server (default " + defaultThreadsURL + ")."

func newThreadsCmd() *cobra.Command {
	return group(&cobra.Command{
		Use:   "threads",
		Short: "Use agent threads from the command line",
		Long:  "Create and list threads, show and follow their messages, and post.\n\n" + threadsHelp,
		Example: "  trunkline threads list --unread\n" +
			"  trunkline threads tail th_01KHP2Q3W4X5Y6Z7A8B9C0D1E2\n" +
			"  echo done | trunkline threads post th_01KHP2Q3W4X5Y6Z7A8B9C0D1E2 -",
	}, "create, list, show, tail, post, export, erase-thread, erase-agent, erasures and webhooks",
		append(newThreadsAdminCmds(), newThreadsCreateCmd(),
			newThreadsListCmd(), newThreadsShowCmd(), newThreadsTailCmd(), newThreadsPostCmd())...)
}

// threadsVerb returns a verb of the group; run makes its requests.
func threadsVerb(
	use, short, example string, args cobra.PositionalArgs, run func(o *operator, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: short + ".\n\n" + threadsHelp, Example: example, Args: args,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o := &operator{cmd: cmd}
			if o.base, o.token, err = threadsServer(); err == nil {
				err = run(o, args)
			}
			return threadsError(err)
		},
	}
}

// threadsError gives a refusal of the server its exit code.
func threadsError(err error) error {
	e, ok := err.(*operatorError)
	if !ok {
		return err
	}
	code := cli.CodeFailed
	switch e.code {
	case "NOT_FOUND":
		code = cli.CodeNotFound
	case "UNAUTHORIZED", "FORBIDDEN", "OUT_OF_SCOPE_WORKSPACE", "CLAIM_MISMATCH", "INSUFFICIENT_AUTHORITY":
		code = cli.CodeNotAllowed
	case "CONFLICT", "IDEMPOTENCY_CONFLICT":
		code = cli.CodeConflict
	case "VALIDATION_ERROR":
		code = cli.CodeUsage
	case "RATE_LIMITED", "INTERNAL":
		code = cli.CodeUnavailable
	}
	return &cli.Error{Code: code, Err: e}
}

func newThreadsCreateCmd() *cobra.Command {
	var kind, participants string
	cmd := threadsVerb("create TITLE", "Create a thread and print its id",
		"  trunkline threads create 'Mapper review' --participants reviewer,executioner --type workflow",
		cobra.ExactArgs(1), func(o *operator, args []string) error {
			if participants == "" {
				return cli.Errorf(cli.CodeUsage, "cannot create a thread without --participants")
			}
			var t threadView
			in := map[string]any{"title": args[0], "type": kind, "participants": strings.Split(participants, ","),
				"idempotency_key": rand.Text()}
			if err := o.ask("/v1/create_thread", in, &t); err != nil {
				return err
			}
			return cli.Show(o.cmd, map[string]any{"thread_id": t.ThreadID, "status": t.Status}, [][]string{{t.ThreadID}})
		})
	cmd.Flags().StringVar(&kind, "type", "conversation", "conversation, workflow or incident")
	cmd.Flags().StringVar(&participants, "participants", "", "agent ids of the participants, comma separated")
	return cmd
}

// listedThread is a thread in the answer of list_threads.
type listedThread struct {
	threadView
	Latest   uint64 `json:"latest_seq"`
	LastRead uint64 `json:"last_read_seq"`
	Unread   uint64 `json:"unread"`
}

func newThreadsListCmd() *cobra.Command {
	var status, kind, participant, order string
	var unread bool
	var limit int
	cmd := threadsVerb("list", "List threads, those that changed last first",
		"  trunkline threads list --unread\n  trunkline threads list --participant reviewer --status active --json",
		cobra.NoArgs, func(o *operator, _ []string) error {
			in := map[string]any{"order": order}
			for name, value := range map[string]string{"status": status, "type": kind, "participant": participant} {
				if value != "" {
					in[name] = value
				}
			}
			if unread {
				in["unread"] = true
			}
			list, err := o.list(in, limit)
			if err != nil {
				return err
			}
			rows := [][]string{{"THREAD", "STATUS", "UNREAD", "MESSAGES", "UPDATED", "TITLE"}}
			for i := range list {
				t := &list[i]
				rows = append(rows, []string{t.ThreadID, t.Status, strconv.FormatUint(t.Unread, 10),
					strconv.FormatUint(t.Latest, 10), t.UpdatedAt, cli.Visible(t.Title)})
			}
			return cli.Show(o.cmd, map[string]any{"threads": list}, rows)
		})
	f := cmd.Flags()
	f.StringVar(&status, "status", "", "active, blocked, resolved or closed")
	f.StringVar(&kind, "type", "", "conversation, workflow or incident")
	f.StringVar(&participant, "participant", "", "an agent id: its threads")
	f.BoolVar(&unread, "unread", false, "threads with unread messages only")
	f.StringVar(&order, "order", "updated", "updated or created")
	f.IntVar(&limit, "limit", 50, "how many threads at most")
	return cmd
}

// list returns pages of threads, up to so many.
func (o *operator) list(in map[string]any, most int) (list []listedThread, err error) {
	list = []listedThread{}
	for len(list) < most {
		in["limit"] = min(most-len(list), 200)
		var page struct {
			Threads    []listedThread `json:"threads"`
			NextCursor string         `json:"next_cursor"`
		}
		if err := o.ask("/v1/list_threads", in, &page); err != nil {
			return nil, err
		}
		list = append(list, page.Threads...)
		if page.NextCursor == "" {
			break
		}
		in["cursor"] = page.NextCursor
	}
	return list, nil
}

func newThreadsShowCmd() *cobra.Command {
	var messages int
	cmd := threadsVerb("show THREAD", "Show a thread with its last messages",
		"  trunkline threads show th_01KHP2Q3W4X5Y6Z7A8B9C0D1E2 --messages 5",
		cobra.ExactArgs(1), func(o *operator, args []string) (err error) {
			if messages < 0 || messages > 200 {
				return cli.Errorf(cli.CodeUsage, "cannot use --messages %d: want 0 to 200", messages)
			}
			in := &inspection{Messages: []map[string]any{}, Triggers: []map[string]any{}}
			o.thread = args[0]
			if in.Thread, err = o.get(); err == nil && messages > 0 {
				in.Messages, err = o.latest(messages)
			}
			if err != nil {
				return err
			}
			return cli.Show(o.cmd, map[string]any{"thread": in.Thread, "messages": in.Messages}, in.rows())
		})
	cmd.Flags().IntVar(&messages, "messages", 20, "how many of the last messages")
	return cmd
}

func newThreadsPostCmd() *cobra.Command {
	var kind, replyTo, key, metadata string
	cmd := threadsVerb("post THREAD TEXT", "Post a message; - reads the text from stdin",
		"  trunkline threads post th_01KHP2Q3W4X5Y6Z7A8B9C0D1E2 'looks good'\n"+
			"  git diff | trunkline threads post th_01KHP2Q3W4X5Y6Z7A8B9C0D1E2 -",
		cobra.ExactArgs(2), func(o *operator, args []string) error {
			text := args[1]
			if text == "-" {
				all, err := io.ReadAll(io.LimitReader(o.cmd.InOrStdin(), maxOperatorAnswer))
				if err != nil {
					return fmt.Errorf("cannot read the message: %w", err)
				}
				text = string(all)
			}
			in := map[string]any{"thread_id": args[0], "schema_version": 1, "kind": kind, "body": text,
				"idempotency_key": cmp.Or(key, rand.Text())}
			if replyTo != "" {
				in["in_reply_to"] = replyTo
			}
			if metadata != "" {
				in["metadata"] = json.RawMessage(metadata)
				if !json.Valid([]byte(metadata)) {
					return cli.Errorf(cli.CodeUsage, "cannot use --metadata: it is no JSON object")
				}
			}
			var posted struct {
				MessageID string `json:"message_id"`
				Seq       uint64 `json:"seq"`
			}
			if err := o.ask("/v1/post_message", in, &posted); err != nil {
				return err
			}
			return cli.Show(o.cmd, posted, [][]string{{strconv.FormatUint(posted.Seq, 10), posted.MessageID}})
		})
	f := cmd.Flags()
	f.StringVar(&kind, "kind", "chat", "chat, event or system")
	f.StringVar(&metadata, "metadata", "", "a JSON object")
	f.StringVar(&replyTo, "reply-to", "", "the id of the message that is answered")
	f.StringVar(&key, "key", "", "idempotency key (default: a random one)")
	return cmd
}

// tailPause is left before a stream that broke off is opened again.
const tailPause = time.Second

func newThreadsTailCmd() *cobra.Command {
	var since uint64
	var fromStart, once bool
	cmd := threadsVerb("tail THREAD", "Print messages of a thread as they are posted; all is every thread that the token may read",
		"  trunkline threads tail th_01KHP2Q3W4X5Y6Z7A8B9C0D1E2 --since 12\n  trunkline threads tail all --json",
		cobra.ExactArgs(1), func(o *operator, args []string) error {
			q := url.Values{"thread_id": {args[0]}}
			if args[0] == "all" {
				q.Set("thread_id", "*")
			} else if !fromStart && !o.cmd.Flags().Changed("since") {
				o.thread = args[0]
				var t listedThread
				if err := o.ask("/v1/get_thread", map[string]any{"thread_id": o.thread}, &t); err != nil {
					return err
				}
				since = t.Latest
			}
			last := ""
			for {
				q.Set("since_seq", strconv.FormatUint(since, 10))
				err := o.events(q, &last)
				if _, refused := err.(*operatorError); refused || once || o.cmd.Context().Err() != nil {
					return err
				}
				select { // the stream broke off: it goes on behind the last message
				case <-o.cmd.Context().Done():
					return nil
				case <-time.After(tailPause):
				}
			}
		})
	f := cmd.Flags()
	f.Uint64Var(&since, "since", 0, "the seq after which to begin (default: the last message)")
	f.BoolVar(&fromStart, "all", false, "begin with the first message")
	f.BoolVar(&once, "once", false, "end when the stream does")
	return cmd
}

// event is one of a stream of messages.
type event struct {
	ThreadID string `json:"thread_id"`
	Message  struct {
		Seq    uint64 `json:"seq"`
		Kind   string `json:"kind"`
		Body   string `json:"body"`
		Sender string `json:"sender_agent_id"`
		At     string `json:"created_at"`
	} `json:"message"`
	Error *struct{ Code, Message string } `json:"error"`
}

// events prints the messages of a stream until it ends. last is the id of the last event.
func (o *operator) events(q url.Values, last *string) error {
	req, err := http.NewRequestWithContext(o.cmd.Context(), http.MethodGet,
		strings.TrimRight(o.base, "/")+"/v1/stream?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	token, err := o.token()
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if *last != "" {
		req.Header.Set("Last-Event-ID", *last)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot reach the server: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, maxOperatorAnswer))
		return refusalOf(res.StatusCode, text)
	}
	in := bufio.NewReaderSize(res.Body, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("the stream ended: %w", err)
		}
		if id, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
			*last = string(bytes.TrimSpace(id))
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		if err := o.show(data, q.Get("thread_id") == "*"); err != nil {
			return err
		}
	}
}

// show prints one event.
func (o *operator) show(data []byte, all bool) error {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("cannot read the stream: %w", err)
	}
	if e.Error != nil {
		if e.Error.Code == codeUnreachable {
			return fmt.Errorf("the stream ended: %s", e.Error.Message)
		}
		return &operatorError{e.Error.Code, e.Error.Message}
	}
	if cli.JSON(o.cmd) {
		_, err := o.cmd.OutOrStdout().Write(data)
		return err
	}
	m, thread := &e.Message, ""
	if all {
		thread = e.ThreadID + " "
	}
	return cli.Write(o.cmd.OutOrStdout(), fmt.Sprintf("%s%d %s %s %s: %s\n", thread, m.Seq, m.At, m.Sender, m.Kind, cli.VisibleLines(m.Body)))
}
