package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/engine/obs"
)

// newThreadsAdminCmds returns the verbs of the group for operators, at the admin endpoint of the
// node that leads the partition of the thread.
func newThreadsAdminCmds() []*cobra.Command {
	return []*cobra.Command{newThreadsExportCmd(), newEraseThreadCmd(), newEraseAgentCmd(), newErasuresCmd(), newWebhooksCmd()}
}

// adminVerb returns a verb of an operator; run is called once the endpoint is known.
func adminVerb(
	use, short, example string, args cobra.PositionalArgs, run func(cmd *cobra.Command, f *operatorFlags, args []string) error) *cobra.Command {
	var f operatorFlags
	cmd := &cobra.Command{Use: use, Short: short, Long: short + ".\n\n" + operatorHelp + "did what.", Example: example, Args: args}
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.find(cmd); err != nil {
			return err
		}
		return run(cmd, &f, args)
	}
	return cmd
}

// send makes a request and decodes its answer; an order has its reason as JSON.
func (f *operatorFlags) send(cmd *cobra.Command, path string, order bool, into any) error {
	method, body := http.MethodGet, []byte(nil)
	if order {
		method = http.MethodPost
		body, _ = json.Marshal(map[string]string{"reason": f.reason})
	}
	req, err := http.NewRequestWithContext(cmd.Context(), method, "http://"+f.addr+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("cannot ask admin endpoint %q: %w", f.addr, err)
	}
	if order {
		req.Header.Set("Content-Type", "application/json")
	}
	if f.token != "" {
		req.Header.Set("Authorization", "Bearer "+f.token)
	}
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return f.explain(fmt.Errorf("cannot reach admin endpoint %s: %w", f.addr, err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusAccepted {
		return refused(resp)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

func newThreadsExportCmd() *cobra.Command {
	return adminVerb("export THREAD", "Write a thread with all of its messages to stdout, as lines of JSON",
		"  trunkline threads export th_01KHP2Q3W4X5Y6Z7A8B9C0D1E2 > thread.ndjson", cobra.ExactArgs(1),
		func(cmd *cobra.Command, f *operatorFlags, args []string) error {
			resp, err := f.do(cmd.Context(), http.MethodGet, "/threads/"+url.PathEscape(args[0])+"/export", nil)
			if err != nil {
				return f.explain(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return refused(resp)
			}
			whole := false
			in, out := bufio.NewReaderSize(resp.Body, 64<<10), cmd.OutOrStdout()
			for {
				line, err := in.ReadBytes('\n')
				if _, failed := out.Write(line); failed != nil {
					return failed
				}
				if err != nil {
					break
				}
				whole = bytes.HasPrefix(line, []byte(`{"end":true`))
			}
			if !whole {
				return cli.Errorf(cli.CodeUnavailable, "the export was cut off: its last line is missing")
			}
			return nil
		})
}

// erasure is what an order to erase answers.
type erasure struct {
	Number    uint64 `json:"erasure"`
	At        string `json:"requested_at"`
	Workspace string `json:"workspace_id"`
	Thread    string `json:"thread_id,omitempty"`
	Agent     string `json:"agent_id,omitempty"`
	Reason    string `json:"reason"`
	State     string `json:"state"`
	Error     string `json:"error,omitempty"`
}

func (e *erasure) row() []string {
	what := e.Thread
	if what == "" {
		what = e.Workspace + "/" + e.Agent
	}
	return []string{strconv.FormatUint(e.Number, 10), cli.Visible(what), e.State, e.At, cli.Visible(e.Reason)}
}

var erasureHead = []string{"ERASURE", "OF", "STATE", "REQUESTED", "REASON"}

// erase has the server erase what is at a path.
func erase(cmd *cobra.Command, f *operatorFlags, path string) error {
	if f.reason == "" {
		return cli.Errorf(cli.CodeUsage, "cannot erase without --reason")
	}
	var e erasure
	if err := f.send(cmd, path, true, &e); err != nil {
		return err
	}
	return cli.Show(cmd, e, [][]string{erasureHead, e.row()})
}

func newEraseThreadCmd() *cobra.Command {
	return adminVerb("erase-thread THREAD", "Erase the texts of a thread for good",
		"  trunkline threads erase-thread th_01KHP2Q3W4X5Y6Z7A8B9C0D1E2 --reason 'ticket 12'", cobra.ExactArgs(1),
		func(cmd *cobra.Command, f *operatorFlags, args []string) error {
			return erase(cmd, f, "/threads/"+url.PathEscape(args[0])+"/erase")
		})
}

func newEraseAgentCmd() *cobra.Command {
	return adminVerb("erase-agent WORKSPACE AGENT", "Erase the texts and the name of an agent in a workspace for good",
		"  trunkline threads erase-agent w1 reviewer --reason 'ticket 12'", cobra.ExactArgs(2),
		func(cmd *cobra.Command, f *operatorFlags, args []string) error {
			return erase(cmd, f, "/agents/"+url.PathEscape(args[0])+"/"+url.PathEscape(args[1])+"/erase")
		})
}

func newErasuresCmd() *cobra.Command {
	return adminVerb("erasures", "List erasures, and whether the files of the server are free of their texts",
		"  trunkline threads erasures --json", cobra.NoArgs,
		func(cmd *cobra.Command, f *operatorFlags, _ []string) error {
			var list struct {
				Erasures []erasure `json:"erasures"`
			}
			if err := f.send(cmd, "/erasures", false, &list); err != nil {
				return err
			}
			rows := [][]string{erasureHead}
			for i := range list.Erasures {
				rows = append(rows, list.Erasures[i].row())
			}
			return cli.Show(cmd, list, rows)
		})
}

func newWebhooksCmd() *cobra.Command {
	cmd := adminVerb("webhooks", "List the webhooks of a server, and what waits for them", "  trunkline threads webhooks", cobra.NoArgs,
		func(cmd *cobra.Command, f *operatorFlags, _ []string) error {
			var list struct {
				Webhooks []obs.Webhook `json:"webhooks"`
			}
			if err := f.send(cmd, "/webhooks", false, &list); err != nil {
				return err
			}
			rows := [][]string{{"WEBHOOK", "HOST", "PENDING", "DELIVERED", "FAILED", "DEAD", "STATE"}}
			for _, w := range list.Webhooks {
				state := "on"
				if w.Disabled {
					state = "off: it answered 410"
				}
				rows = append(rows, []string{w.Name, w.Host, fmt.Sprint(w.Pending), fmt.Sprint(w.Delivered),
					fmt.Sprint(w.Failed), fmt.Sprint(w.DeadLetters), state})
			}
			return cli.Show(cmd, list, rows)
		})
	var thread string
	var seq uint64
	resend := adminVerb("resend WEBHOOK", "Deliver dead letters of a webhook again",
		"  trunkline threads webhooks resend audit\n"+
			"  trunkline threads webhooks resend audit --thread th_01KHP2Q3W4X5Y6Z7A8B9C0D1E2 --seq 7",
		cobra.ExactArgs(1),
		func(cmd *cobra.Command, f *operatorFlags, args []string) error {
			q := url.Values{}
			if thread != "" {
				q.Set("thread_id", thread)
			}
			if seq > 0 {
				q.Set("seq", strconv.FormatUint(seq, 10))
			}
			var done struct {
				Resent int `json:"resent"`
			}
			if err := f.send(cmd, "/webhooks/"+url.PathEscape(args[0])+"/resend?"+q.Encode(), true, &done); err != nil {
				return err
			}
			return cli.Show(cmd, done, [][]string{{fmt.Sprintf("%d delivered again", done.Resent)}})
		})
	resend.Flags().StringVar(&thread, "thread", "", "of this thread only")
	resend.Flags().Uint64Var(&seq, "seq", 0, "this message only")
	dead := adminVerb("dead WEBHOOK", "List what a webhook did not take for a day", "  trunkline threads webhooks dead audit", cobra.ExactArgs(1),
		func(cmd *cobra.Command, f *operatorFlags, args []string) error {
			var list struct {
				Dead []struct {
					Thread string `json:"thread_id"`
					Seq    uint64 `json:"seq"`
					Status int    `json:"last_status"`
				} `json:"dead_letters"`
			}
			if err := f.send(cmd, "/webhooks/"+url.PathEscape(args[0])+"/dead", false, &list); err != nil {
				return err
			}
			rows := [][]string{{"THREAD", "SEQ", "STATUS"}}
			for _, l := range list.Dead {
				rows = append(rows, []string{l.Thread, strconv.FormatUint(l.Seq, 10), strconv.Itoa(l.Status)})
			}
			return cli.Show(cmd, list, rows)
		})
	cmd.AddCommand(dead, resend)
	return cmd
}
