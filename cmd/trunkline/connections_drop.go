package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
)

// dropFlags are the arguments of connections drop beside the connection.
type dropFlags struct {
	adminQuery
	tokenFile, reason string
}

func newConnectionsDropCmd() *cobra.Command {
	var f dropFlags
	cmd := &cobra.Command{
		Use:   "drop CONNECTION",
		Short: "Close a connection of a running server at once",
		Long: "Close a connection of a running server at once, with what is on its way, as if\n" +
			"the client had gone. The client may connect again. The names of connections\n" +
			"are those of 'trunkline connections'.\n\n" +
			"The server needs to know who may: the token is that of an operator of its web\n" +
			"console, and the log of the server has who dropped what, and why.",
		Example: "  trunkline connections drop ipc-12 --reason 'reads nothing'\n  trunkline connections drop http-3 --token-file operator.token --json",
		Args:    cobra.ExactArgs(1),
	}
	f.add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.tokenFile, "token-file", "", "file with the token of an operator (default that of the context, else admin.console_operator_token_file)")
	fs.StringVar(&f.reason, "reason", "", "why, for the log of the server")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runDrop(cmd, &f, args[0]) }
	return cmd
}

// find finds the address and the file of the token. That of the context, or of the settings, is
// shown only to the address of the same.
func (f *dropFlags) find(cmd *cobra.Command) error {
	if err := f.adminQuery.find(cmd); err != nil || cmd.Flags().Changed("admin") {
		return err
	}
	at, err := findReach(cmd, fieldAdmin)
	if err != nil {
		return err
	}
	token, err := findReach(cmd, fieldConsoleTokenFile)
	if err == nil && at.fromContext() == token.fromContext() {
		f.tokenFile = cmp.Or(f.tokenFile, token.Value)
	}
	return err
}

func runDrop(cmd *cobra.Command, f *dropFlags, name string) error {
	if err := f.find(cmd); err != nil {
		return err
	}
	token, err := readToken(f.tokenFile)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	form := url.Values{"id": {name}, "reason": {f.reason}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+f.addr+"/console/connection/drop", strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("cannot ask admin endpoint %q: %w", f.addr, err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := doAdmin(f.addr, req)
	if err != nil {
		return f.explain(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return explainDrop(refused(resp))
	}
	return cli.Show(cmd, struct {
		Dropped string `json:"dropped"`
	}{name}, [][]string{{"dropped", name}})
}

// explainDrop gives a refusal a hint.
func explainDrop(err *cli.Error) error {
	switch err.Code {
	case cli.CodeNotAllowed:
		return err.WithHint("--token-file names the file with the token of an operator: admin.console_operator_token_file of the server")
	case cli.CodeNotFound:
		return err.WithHint("'trunkline connections' lists those that are open")
	}
	return err
}
