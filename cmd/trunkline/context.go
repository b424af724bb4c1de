package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/clientcontext"
	"trunkline/cmd/trunkline/internal/config"
)

// contextField is a value of a context: its flag, where else a client verb takes it from, and what
// it is. file marks the path of a file.
type contextField struct {
	name, env, setting string
	file               bool
	help               string
	of                 func(*clientcontext.Context) *string
}

// contextFields lists them in the order shown to people.
func contextFields() []contextField {
	return []contextField{
		{name: fieldAddr, env: envAddr, setting: "kernel.listen_addr", help: "server of kernel IPC, host:port or unix:///path",
			of: func(c *clientcontext.Context) *string { return &c.Addr }},
		{name: "tls-ca", file: true, help: "certificates its own is checked against, PEM file; switches TLS on",
			of: func(c *clientcontext.Context) *string { return &c.TLSCA }},
		{name: "tls-cert", file: true, help: "certificate to show to it, PEM file; switches TLS on",
			of: func(c *clientcontext.Context) *string { return &c.TLSCert }},
		{name: "tls-key", file: true, help: "private key of that certificate, PEM file",
			of: func(c *clientcontext.Context) *string { return &c.TLSKey }},
		{name: fieldAdmin, setting: "admin.listen_addr", help: "admin endpoint, host:port",
			of: func(c *clientcontext.Context) *string { return &c.Admin }},
		{name: fieldConsoleTokenFile, setting: "admin.console_operator_token_file", file: true,
			help: "file with the token for it; that of an operator for orders",
			of:   func(c *clientcontext.Context) *string { return &c.ConsoleTokenFile }},
		{name: fieldThreadsURL, env: envThreadsURL, help: "server of agent threads, URL",
			of: func(c *clientcontext.Context) *string { return &c.ThreadsURL }},
		{name: fieldTokenFile, env: envThreadsTokenFile, file: true, help: "file with the token for agent threads",
			of: func(c *clientcontext.Context) *string { return &c.TokenFile }},
		{name: fieldExactaAddr, env: envExactaAddr, setting: "exacta.listen_addr", help: "server of projects, host:port or unix:///path",
			of: func(c *clientcontext.Context) *string { return &c.ExactaAddr }},
		{name: fieldExactaTokenFile, env: envExactaTokenFile, setting: "exacta.auth_token_file", file: true, help: "file with the token for projects",
			of: func(c *clientcontext.Context) *string { return &c.ExactaTokenFile }},
	}
}

// Fields that client verbs ask for.
const (
	fieldAddr             = "addr"
	fieldConsoleTokenFile = "console-token-file"
	fieldAdmin            = "admin"
	fieldThreadsURL       = "threads-url"
	fieldTokenFile        = "token-file"
	fieldExactaAddr       = "exacta-addr"
	fieldExactaTokenFile  = "exacta-token-file"
)

// chosenContext returns the context in force, an empty one without any.
func chosenContext() (clientcontext.Chosen, error) {
	dir, err := os.Getwd()
	if err != nil {
		dir = "" // it was removed: it chooses none
	}
	store, err := clientcontext.Open("")
	if err != nil {
		return clientcontext.Chosen{}, nil //nolint:nilerr // a user without a home has no contexts
	}
	c, err := store.Choose(os.Getenv(clientcontext.Env), dir)
	return c, contextError(err)
}

// contextError gives an error of contexts its exit code and a hint.
func contextError(err error) error {
	switch {
	case errors.Is(err, clientcontext.ErrNotFound):
		return &cli.Error{Code: cli.CodeNotFound, Err: err, Hint: "'trunkline context list' shows the names"}
	case errors.Is(err, clientcontext.ErrExists):
		return &cli.Error{Code: cli.CodeConflict, Err: err, Hint: "--replace replaces it"}
	case errors.Is(err, clientcontext.ErrName):
		return &cli.Error{Code: cli.CodeUsage, Err: err}
	}
	return err
}

// reach is a value by which a server is reached. Origin is "env NAME", "context NAME", or that of a
// setting; "" if there is no value.
type reach struct {
	Field  string `json:"field"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// fromContext reports whether the context in force gave the value, or is in force and gave none.
func (r reach) fromContext() bool { return strings.HasPrefix(r.Origin, "context ") }

// findReach returns a value for a client verb whose flag does not give it: that of the environment,
// of settings that were asked for, of the context in force, of the settings. A context that does
// not name the value gives "": another server is not asked in the place of the one that was chosen.
func findReach(cmd *cobra.Command, name string) (reach, error) {
	c, err := chosenContext()
	if err != nil {
		return reach{}, err
	}
	for _, f := range contextFields() {
		if f.name == name {
			return f.find(cmd, &c)
		}
	}
	return reach{}, fmt.Errorf("BUG: no field %s of contexts", name)
}

// notInContext reports whether a context is in force that names no server of kernel IPC.
func notInContext(cmd *cobra.Command) bool {
	r, err := findReach(cmd, fieldAddr)
	return err == nil && r.fromContext() && r.Value == ""
}

func (f *contextField) find(cmd *cobra.Command, c *clientcontext.Chosen) (reach, error) {
	r := reach{Field: f.name}
	if v := os.Getenv(f.env); f.env != "" && v != "" {
		r.Value, r.Origin = v, "env "+f.env
		return r, nil
	}
	if c.Name != "" && !f.asked(cmd) {
		r.Value, r.Origin = *f.of(&c.Context), "context "+c.Name
		return r, nil
	}
	if f.setting == "" || cmd.Flags().Lookup("set") == nil {
		return r, nil
	}
	all, err := loadConfig(cmd)
	if err != nil {
		return r, err
	}
	for _, row := range all.Rows() {
		if row.Key == f.setting {
			first, _, _ := strings.Cut(fmt.Sprint(row.Value), ",")
			if r.Value = first; first != "" {
				r.Origin = row.Origin
			}
		}
	}
	return r, nil
}

// asked reports whether the command line or the environment names settings, which win over a
// context then.
func (f *contextField) asked(cmd *cobra.Command) bool {
	fs := cmd.Flags()
	return f.setting != "" && (fs.Changed("config") || fs.Changed("set") || os.Getenv(config.EnvName(f.setting)) != "")
}

func newContextCmd() *cobra.Command {
	return group(&cobra.Command{
		Use:   "context",
		Short: "Name servers, and choose which one the client verbs ask",
		Long: "A context is a name for a server: its addresses, the certificates by which it is trusted, the files with the tokens for it. " +
			"It is used by the verbs that ask a server. $" + clientcontext.Env + " chooses one, else the file " + clientcontext.LocalFile + " of the working directory or of the " +
			"nearest directory above it, else the current one. Flags and the environment win over a context, a context wins over the settings.\n\n" +
			"Contexts are files in the user's configuration directory (trunkline/contexts in $XDG_CONFIG_HOME), which only the user can read. They hold no token, only the names of files with one.",
		Example: "  trunkline context add prod --addr 10.0.0.5:50051 --tls-ca ca.pem --admin 127.0.0.1:50090\n" +
			"  trunkline context use prod\n  trunkline context show",
	}, "add, use, show, list and remove", newContextAddCmd(), newContextUseCmd(), newContextShowCmd(), newContextListCmd(), newContextRemoveCmd())
}

func newContextAddCmd() *cobra.Command {
	var c clientcontext.Context
	var replace bool
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Name a server",
		Long:  "Store a context. Paths of files are kept as absolute ones, so that they mean the same in every directory.",
		Example: "  trunkline context add local --addr 127.0.0.1:50051 --admin 127.0.0.1:50090\n" +
			"  trunkline context add team --threads-url https://threads.example --token-file ~/team.token",
		Args: cobra.ExactArgs(1),
	}
	for _, f := range contextFields() {
		cmd.Flags().StringVar(f.of(&c), f.name, "", f.help)
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "replace the context of that name")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if c == (clientcontext.Context{}) {
			return cli.Errorf(cli.CodeUsage, "cannot add the context %q: no flag names a part of it", args[0]).WithHint("--addr names the server of kernel IPC")
		}
		if err := checkContext(&c); err != nil {
			return err
		}
		store, err := clientcontext.Open("")
		if err != nil {
			return err
		}
		if err := store.Put(args[0], c, replace); err != nil {
			return contextError(err)
		}
		_, err = fmt.Fprintf(cmd.ErrOrStderr(), "trunkline: 'trunkline context use %s' makes it the current one\n", args[0])
		return err
	}
	return cmd
}

// checkContext checks the form of addresses and makes paths absolute.
func checkContext(c *clientcontext.Context) error {
	for _, f := range contextFields() {
		v := f.of(c)
		if *v == "" {
			continue
		}
		var err error
		switch {
		case f.file:
			*v, err = filepath.Abs(*v)
		case f.name != fieldThreadsURL:
			err = config.CheckAddr(*v)
		}
		if err != nil {
			return cli.Errorf(cli.CodeUsage, "cannot use --%s %q: %w", f.name, *v, err)
		}
	}
	if strings.HasPrefix(c.Admin, "unix://") {
		return cli.Errorf(cli.CodeUsage, "cannot use --admin %q: want host:port", c.Admin)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return cli.Errorf(cli.CodeUsage, "cannot use one of --tls-cert and --tls-key without the other")
	}
	return nil
}

func newContextUseCmd() *cobra.Command {
	var here, none bool
	cmd := &cobra.Command{
		Use:     "use NAME",
		Short:   "Make a context the current one",
		Long:    "Make a context the current one, or with --here that of the working directory and of all below it. --none leaves no current one.",
		Example: "  trunkline context use prod\n  trunkline context use staging --here\n  trunkline context use --none",
		Args: func(cmd *cobra.Command, args []string) error {
			if none {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		ValidArgsFunction: completeContexts,
	}
	cmd.Flags().BoolVar(&here, "here", false, "write "+clientcontext.LocalFile+" in the working directory")
	cmd.Flags().BoolVar(&none, "none", false, "have no current context")
	cmd.MarkFlagsMutuallyExclusive("here", "none")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		store, err := clientcontext.Open("")
		switch {
		case err != nil:
			return err
		case none:
			return store.Use("")
		case !here:
			return contextError(store.Use(args[0]))
		}
		dir, err := os.Getwd()
		if err != nil {
			return err
		}
		return contextError(store.UseIn(dir, args[0]))
	}
	return cmd
}

// shownContext is the document of context show --json.
type shownContext struct {
	Context string  `json:"context"`
	By      string  `json:"chosen_by"`
	Values  []reach `json:"values"`
}

func newContextShowCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [NAME]",
		Short: "Show what the client verbs use, and where each value comes from",
		Long:  "Show the context in force, what chose it, and each value that a client verb without flags would use, with its origin. With a NAME the context of that name is shown as it is stored.",
		Args:  cobra.MaximumNArgs(1), ValidArgsFunction: completeContexts,
	}
	config.AddSourceFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		var c clientcontext.Chosen
		if len(args) > 0 {
			c, err = namedContext(args[0])
		} else {
			c, err = chosenContext()
		}
		if err != nil {
			return err
		}
		shown := shownContext{Context: c.Name, By: c.By, Values: []reach{}}
		rows := [][]string{{"VALUE OF", "VALUE", "ORIGIN"}}
		for _, f := range contextFields() {
			r := reach{Field: f.name, Value: *f.of(&c.Context), Origin: "context " + c.Name}
			if len(args) == 0 {
				if r, err = f.find(cmd, &c); err != nil {
					return err
				}
			}
			shown.Values = append(shown.Values, r)
			if r.Value != "" {
				rows = append(rows, []string{r.Field, cli.Visible(r.Value), r.Origin})
			}
		}
		if !cli.JSON(cmd) {
			talk := "no context is in force"
			if c.Name != "" {
				talk = fmt.Sprintf("context %s, chosen by %s", c.Name, c.By)
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "trunkline: "+talk)
		}
		return cli.Show(cmd, shown, rows)
	}
	return cmd
}

// namedContext returns a context by its name.
func namedContext(name string) (c clientcontext.Chosen, err error) {
	store, err := clientcontext.Open("")
	if err != nil {
		return c, err
	}
	c.Name, c.By = name, "argument"
	c.Context, err = store.Get(name)
	return c, contextError(err)
}

// listedContext is an entry of context list --json.
type listedContext struct {
	Name    string `json:"name"`
	InForce bool   `json:"in_force"`
	clientcontext.Context
}

func newContextListCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the contexts; * marks the one in force",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := clientcontext.Open("")
			if err != nil {
				return err
			}
			names, err := store.Names()
			if err != nil {
				return err
			}
			chosen, warning := chosenContext() // a choice that is wrong does not hide the list
			if warning != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), "warning:", warning)
			}
			listed, rows := []listedContext{}, [][]string{{"", "NAME", "ADDR", "ADMIN", "THREADS", "PROJECTS"}}
			for _, name := range names {
				c, err := store.Get(name)
				if err != nil {
					return err
				}
				mark := ""
				if name == chosen.Name {
					mark = "*"
				}
				listed = append(listed, listedContext{name, mark != "", c})
				rows = append(rows, []string{mark, name, cli.Visible(c.Addr), cli.Visible(c.Admin), cli.Visible(c.ThreadsURL), cli.Visible(c.ExactaAddr)})
			}
			return cli.Show(cmd, listed, rows)
		},
	}
}

func newContextRemoveCmd() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Remove a context", Args: cobra.ExactArgs(1), ValidArgsFunction: completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			store, err := clientcontext.Open("")
			if err != nil {
				return err
			}
			return contextError(store.Remove(args[0]))
		},
	}
}
