package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/benchview"
	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/engine/obs"
	"trunkline/handlers/ops"
)

// maxListed is the longest list that the admin endpoint gives.
const maxListed = 10000

// listFlags are the arguments of a verb that shows a list of the admin endpoint.
type listFlags struct {
	adminQuery
	protocol, sort string
	limit          int
}

func (f *listFlags) add(cmd *cobra.Command, sorts ...string) {
	f.adminQuery.add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.protocol, "protocol", "", "only those of "+inWords(ops.Protocols()))
	fs.StringVar(&f.sort, "sort", "", inWords(sorts)+" (default "+sorts[0]+")")
	_ = cmd.RegisterFlagCompletionFunc("protocol", oneOf(ops.Protocols()...)) // the flags are there
	_ = cmd.RegisterFlagCompletionFunc("sort", oneOf(sorts...))
	fs.IntVar(&f.limit, "limit", 100, "how many at most, up to "+strconv.Itoa(maxListed))
}

// inWords lists values for people.
func inWords(values []string) string {
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// find checks the flags and finds the address.
func (f *listFlags) find(cmd *cobra.Command) error {
	if f.limit < 1 || f.limit > maxListed {
		return cli.Errorf(cli.CodeUsage, "cannot use --limit %d: want 1 to %d", f.limit, maxListed)
	}
	if f.protocol != "" && !slices.Contains(ops.Protocols(), f.protocol) {
		return cli.Errorf(cli.CodeUsage, "cannot use --protocol %q: want %s", f.protocol, inWords(ops.Protocols()))
	}
	return f.adminQuery.find(cmd)
}

func newConnectionsCmd() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "connections",
		Short: "List the open connections of a running server",
		Long: "List the open connections of a running server, with their peers, bytes,\n" +
			"ages, and requests in flight. Sizes and times are sorted by the largest.",
		Example: "  trunkline connections --sort unsent\n  trunkline connections --protocol ipc --json",
		Args:    cobra.NoArgs,
	}
	f.add(cmd, "id", "age", "idle", "bytes_in", "bytes_out", "unsent", "in_flight", "streams")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runConnections(cmd, &f) }
	cmd.AddCommand(newConnectionsDropCmd())
	return cmd
}

func runConnections(cmd *cobra.Command, f *listFlags) error {
	if err := f.find(cmd); err != nil {
		return err
	}
	ask := url.Values{"limit": {strconv.Itoa(f.limit)}}
	for name, value := range map[string]string{"protocol": f.protocol, "sort": f.sort} {
		if value != "" {
			ask.Set(name, value)
		}
	}
	var list ops.Connections
	if err := f.ask(cmd.Context(), "/connections?"+ask.Encode(), &list); err != nil {
		return err
	}
	rows := [][]string{{"ID", "PEER", "AGE", "IDLE", "IN", "OUT", "UNSENT", "IN FLIGHT", "STREAMS", "STATE", "LISTENER"}}
	for i := range list.Connections {
		c := &list.Connections[i]
		rows = append(rows, []string{c.ID, cli.Visible(c.Peer), secondsText(c.AgeSeconds), secondsText(c.IdleSeconds),
			cli.Bytes(uint64(max(c.BytesIn, 0))), cli.Bytes(uint64(max(c.BytesOut, 0))), cli.Bytes(uint64(max(c.UnsentBytes, 0))),
			strconv.FormatInt(c.InFlight, 10), strconv.FormatInt(c.Streams, 10), c.State, c.Listener})
	}
	if err := cli.Show(cmd, list, rows); err != nil {
		return err
	}
	if left := list.Total - len(list.Connections); left > 0 && !cli.JSON(cmd) {
		fmt.Fprintf(cmd.ErrOrStderr(), "trunkline: %d more, --limit shows them\n", left)
	}
	f.noteStandby(cmd)
	return nil
}

// secondsText is a time that has passed, for people.
func secondsText(secs float64) string {
	d := time.Duration(secs * float64(time.Second))
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func newSlowlogCmd() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "slowlog",
		Short: "List the slowest requests that a running server remembers",
		Long: "List the requests that took as long as the threshold of the slow log, or longer,\n" +
			"the newest first. The server keeps a bounded number of them.",
		Example: "  trunkline slowlog --sort duration --limit 20\n  trunkline slowlog --protocol toolhost --json",
		Args:    cobra.NoArgs,
	}
	f.add(cmd, "time", "duration")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runSlowlog(cmd, &f) }
	return cmd
}

func runSlowlog(cmd *cobra.Command, f *listFlags) error {
	if err := f.find(cmd); err != nil {
		return err
	}
	if f.sort != "" && f.sort != "time" && f.sort != "duration" {
		return cli.Errorf(cli.CodeUsage, "cannot use --sort %q: want time or duration", f.sort)
	}
	limit := f.limit
	if f.protocol != "" || f.sort != "" {
		limit = maxListed // what is asked for may be anywhere
	}
	var log obs.SlowLog
	if err := f.ask(cmd.Context(), "/slowlog?limit="+strconv.Itoa(limit), &log); err != nil {
		return err
	}
	log.Entries = slices.DeleteFunc(log.Entries, func(s obs.Slow) bool { return f.protocol != "" && s.Protocol != f.protocol })
	if f.sort == "duration" {
		slices.SortStableFunc(log.Entries, func(a, b obs.Slow) int { return cmp.Compare(b.Seconds, a.Seconds) })
	}
	log.Entries = log.Entries[:min(len(log.Entries), f.limit)]
	rows := [][]string{{"TIME", "TOOK", "PROTOCOL", "METHOD", "CONNECTION", "PEER"}}
	for i := range log.Entries {
		s := &log.Entries[i]
		rows = append(rows, []string{s.At.Format("2006-01-02 15:04:05.000"), benchview.LatencyText(int64(s.Seconds * 1e9)), s.Protocol,
			cli.Visible(s.Method), s.Conn, cli.Visible(s.Peer)})
	}
	if err := cli.Show(cmd, log, rows); err != nil {
		return err
	}
	if !cli.JSON(cmd) {
		least := time.Duration(log.ThresholdSeconds * float64(time.Second)).Round(time.Millisecond) // as it is set
		took := fmt.Sprintf("took %s or longer", least)
		if least == 0 {
			took = "were slow; the log is off: admin.slow_threshold_ms is 0"
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "trunkline: %d of %d requests that %s\n", len(log.Entries), log.Total, took)
	}
	f.noteStandby(cmd)
	return nil
}

// operatorFlags are the arguments of a verb that has a running server change something.
type operatorFlags struct {
	adminQuery
	reason string
}

// operatorHelp is the part of a help text on who may.
const operatorHelp = "The server needs to know who may: the token is that of an operator of its web\n" +
	"console, and the log of the server has who "

func (f *operatorFlags) add(cmd *cobra.Command) {
	f.operator = true
	f.adminQuery.add(cmd)
	fs := cmd.Flags()
	fs.Lookup("token-file").Usage = "file with the token of an operator (default that of the context, else admin.console_operator_token_file)"
	fs.StringVar(&f.reason, "reason", "", "why, for the log of the server")
}

func newConnectionsDropCmd() *cobra.Command {
	var f operatorFlags
	cmd := &cobra.Command{
		Use:   "drop CONNECTION",
		Short: "Close a connection of a running server at once",
		Long: "Close a connection of a running server at once, with what is on its way, as if\n" +
			"the client had gone. The client may connect again. The names of connections\n" +
			"are those of 'trunkline connections'.\n\n" + operatorHelp + "dropped what, and why.",
		Example: "  trunkline connections drop ipc-12 --reason 'reads nothing'\n  trunkline connections drop http-3 --token-file operator.token --json",
		Args:    cobra.ExactArgs(1),
	}
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runDrop(cmd, &f, args[0]) }
	return cmd
}

// order has the server carry out the form of a path below its console. notFound is the hint where
// what it is about is not there.
func (f *operatorFlags) order(cmd *cobra.Command, path string, form url.Values, notFound string) error {
	if err := f.find(cmd); err != nil {
		return err
	}
	form.Set("reason", f.reason)
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	resp, err := f.do(ctx, http.MethodPost, "/console/"+path, form)
	if err != nil {
		return f.explain(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	switch err := refused(resp); err.Code {
	case cli.CodeNotAllowed:
		return err.WithHint("--token-file names the file with the token of an operator: admin.console_operator_token_file of the server")
	case cli.CodeNotFound:
		return err.WithHint(notFound)
	default:
		return err
	}
}

func runDrop(cmd *cobra.Command, f *operatorFlags, name string) error {
	err := f.order(cmd, "connection/drop", url.Values{"id": {name}}, "'trunkline connections' lists those that are open")
	if err != nil {
		return err
	}
	return cli.Show(cmd, struct {
		Dropped string `json:"dropped"`
	}{name}, [][]string{{"dropped", name}})
}
