package main

import (
	"context"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
)

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
