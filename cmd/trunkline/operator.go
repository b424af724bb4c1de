package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/handlers/threads/bridge"
)

// operatorTimeout bounds each request of an operator's command.
const operatorTimeout = 30 * time.Second

// maxOperatorAnswer bounds an answer: two pages of messages.
const maxOperatorAnswer = 16 << 20

// operator is a command of an operator on one thread (threads §4.11).
type operator struct {
	cmd    *cobra.Command
	thread string
	base   string
	token  func() (string, error)
}

// operatorError is a failure of such a command.
type operatorError struct{ code, message string }

// Error implements error.
func (e *operatorError) Error() string { return e.message }

const codeUnreachable = "INTERNAL"

// newOperatorCmd returns a command that needs a thread; run returns what it prints as data.
func newOperatorCmd(use, short string, run func(o *operator) (any, error)) *cobra.Command {
	o := &operator{}
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		Long: short + ". The token must be that of a coordinator or an operator: " + envThreadsTokenFile + " is a file with it, or\n" +
			envThreadsToken + " the token itself. " + envThreadsURL + " is the server (default " + defaultThreadsURL + ").\n\n" +
			"Exit codes: 0 ok, 1 failed, with a JSON object on stderr, 2 usage.",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			for _, name := range []string{"thread-id", "reason"} {
				if f := cmd.Flags().Lookup(name); f != nil && !f.Changed {
					return cli.Errorf(cli.CodeUsage, "cannot %s without --%s", use, name)
				}
			}
			o.cmd = cmd
			if o.base, o.token, err = threadsServer(); err != nil {
				return err
			}
			data, err := run(o)
			if err != nil {
				return o.fail(err)
			}
			if rows, ok := data.(operatorRows); ok && !cli.JSON(cmd) {
				return cli.Show(cmd, nil, rows.rows())
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{"ok": true, "command": use, "happenedAt": now(), "data": data})
		},
	}
	cmd.Flags().StringVar(&o.thread, "thread-id", "", "the thread")
	return cmd
}

// operatorRows is data with a form for people.
type operatorRows interface{ rows() [][]string }

func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

// fail prints a failure as the contract has it.
func (o *operator) fail(err error) error {
	code := codeUnreachable
	if e := (*operatorError)(nil); errors.As(err, &e) {
		code = e.code
	}
	_ = json.NewEncoder(o.cmd.ErrOrStderr()).Encode(map[string]any{"ok": false, "service": "operator-cli", "code": code, "message": err.Error()})
	return &cli.Error{Code: cli.CodeFailed}
}

// threadsServer returns the server that the environment or the context names, and the token for it.
// The token of a context is for its own server only.
func threadsServer() (base string, token func() (string, error), err error) {
	c, err := chosenContext()
	if err != nil {
		return "", nil, err
	}
	base = cmp.Or(os.Getenv(envThreadsURL), c.ThreadsURL, defaultThreadsURL)
	if err := bridge.CheckURL(base); err != nil {
		return "", nil, cli.Errorf(cli.CodeUsage, "%w", err).WithHint("set " + envThreadsURL +
			", or the server of the context")
	}
	file := ""
	if base == c.ThreadsURL {
		file = c.TokenFile
	}
	token, err = threadsToken(file)
	return base, token, err
}

// threadsToken returns the token for agent threads that the environment names, else that of file,
// unless it is "".
func threadsToken(file string) (token func() (string, error), err error) {
	text := strings.TrimSpace(os.Getenv(envThreadsToken))
	switch name := os.Getenv(envThreadsTokenFile); {
	case name != "":
		return bridge.TokenFile(name), nil
	case text != "":
		return func() (string, error) { return text, nil }, nil
	case file != "":
		return bridge.TokenFile(file), nil
	}
	return nil, cli.Errorf(cli.CodeUsage, "cannot use agent threads without a token").WithHint("set " + envThreadsTokenFile + " or " + envThreadsToken)
}

// ask sends a request; body is nil for a GET.
func (o *operator) ask(path string, body, answer any) error {
	method, text := http.MethodGet, []byte(nil)
	if body != nil {
		method = http.MethodPost
		text, _ = json.Marshal(body)
	}
	req, err := http.NewRequestWithContext(o.cmd.Context(), method, strings.TrimRight(o.base, "/")+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	token, err := o.token()
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	client := http.Client{Timeout: operatorTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot reach the server: %w", err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(io.LimitReader(res.Body, maxOperatorAnswer))
	if err != nil {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	if res.StatusCode == http.StatusOK {
		return json.Unmarshal(got, answer)
	}
	return refusalOf(res.StatusCode, got)
}

// refusalOf returns the error of an answer with another status than 200.
func refusalOf(status int, text []byte) error {
	var fault struct {
		Error struct{ Code, Message string }
	}
	if json.Unmarshal(text, &fault) != nil || fault.Error.Code == "" {
		return fmt.Errorf("the server answers with HTTP status %d", status)
	}
	return &operatorError{fault.Error.Code, fault.Error.Message}
}

// threadView is what get_thread answers.
type threadView struct {
	ThreadID     string   `json:"thread_id"`
	WorkspaceID  string   `json:"workspace_id"`
	Title        string   `json:"title"`
	Type         string   `json:"type"`
	Status       string   `json:"status"`
	Participants []string `json:"participants"`
	CreatedAt    string   `json:"created_at"`
	UpdatedAt    string   `json:"updated_at"`
}

func (o *operator) get() (t threadView, err error) {
	return t, o.ask("/v1/get_thread", map[string]any{"thread_id": o.thread}, &t)
}

// newThreadStatusCmd returns a command that changes the status of a thread.
func newThreadStatusCmd(use, short, to string) *cobra.Command {
	var reason string
	cmd := newOperatorCmd(use, short, func(o *operator) (any, error) {
		before, err := o.get()
		if err != nil {
			return nil, err
		}
		var after threadView
		err = o.ask("/v1/update_thread_status", map[string]any{"thread_id": o.thread, "status": to, "reason": reason}, &after)
		return map[string]any{"thread_id": after.ThreadID, "status": after.Status, "changed": before.Status != after.Status}, err
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit")
	return cmd
}

// inspection is what inspect-thread shows.
type inspection struct {
	Thread   threadView       `json:"thread"`
	Messages []map[string]any `json:"messages"`
	Triggers []map[string]any `json:"triggers"`
}

func (in *inspection) rows() [][]string {
	t := &in.Thread
	rows := [][]string{{"thread_id", t.ThreadID}, {"title", t.Title}, {"type", t.Type}, {"status", t.Status},
		{"participants", strings.Join(t.Participants, ", ")}, {"created_at", t.CreatedAt}, {"updated_at", t.UpdatedAt}}
	for _, m := range in.Messages {
		rows = append(rows, []string{fmt.Sprintf("message %v", m["seq"]), fmt.Sprintf("%v %v %v: %q", m["created_at"], m["sender_agent_id"], m["kind"], m["body"])})
	}
	for _, j := range in.Triggers {
		rows = append(rows, []string{"trigger", fmt.Sprintf("%v %v for %v: %v", j["created_at"], j["trigger_id"], j["target_agent_id"], j["job_status"])})
	}
	return rows
}

func newInspectThreadCmd() *cobra.Command {
	var messages, triggers int
	cmd := newOperatorCmd("inspect-thread", "Show a thread with its latest messages and trigger jobs", func(o *operator) (any, error) {
		if messages < 0 || triggers < 0 || messages > 200 || triggers > 200 {
			return nil, &operatorError{"VALIDATION_ERROR", "--limit-messages and --limit-triggers are from 0 to 200"}
		}
		in := &inspection{Messages: []map[string]any{}, Triggers: []map[string]any{}}
		var err error
		if in.Thread, err = o.get(); err != nil {
			return nil, err
		}
		if messages > 0 {
			if in.Messages, err = o.latest(messages); err != nil {
				return nil, err
			}
		}
		if triggers > 0 {
			var list struct{ Jobs []map[string]any }
			err = o.ask("/v1/trigger_jobs?"+url.Values{"thread_id": {o.thread}, "limit": {strconv.Itoa(triggers)}}.Encode(), nil, &list)
			in.Triggers = list.Jobs
		}
		return in, err
	})
	cmd.Flags().IntVar(&messages, "limit-messages", 20, "how many of the latest messages, at most 200")
	cmd.Flags().IntVar(&triggers, "limit-triggers", 20, "how many of the latest trigger jobs, at most 200")
	return cmd
}

// latest returns the last messages of the thread.
func (o *operator) latest(n int) ([]map[string]any, error) {
	type page struct {
		Messages []map[string]any `json:"messages"`
		NextSeq  int64            `json:"next_seq"`
	}
	var end, last page
	// Beyond the last message the answer names it.
	if err := o.ask("/v1/read_messages", map[string]any{"thread_id": o.thread, "since_seq": int64(1)<<53 - 1, "limit": 1}, &end); err != nil {
		return nil, err
	}
	err := o.ask("/v1/read_messages", map[string]any{"thread_id": o.thread, "since_seq": max(end.NextSeq-int64(n), 0), "limit": n}, &last)
	return last.Messages, err
}

// newOperatorCmds returns the commands of operators on threads.
func newOperatorCmds() []*cobra.Command {
	return []*cobra.Command{
		newInspectThreadCmd(),
		newThreadStatusCmd("escalate-thread", "Block a thread, for a person to look at it", "blocked"),
		newThreadStatusCmd("unblock-thread", "Make a blocked thread active again", "active"),
		newThreadStatusCmd("override-close-thread", "Close a thread, also a blocked one, with a reason such as human_override:WHY", "closed"),
	}
}
