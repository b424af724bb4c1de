package main

import (
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/envelope"
	"trunkline/engine/obs"
	"trunkline/handlers/exchange"
)

// exchangeVerbs describes the commands of the envelope exchange by name (envelope §2.2, §4.4).
var exchangeVerbs = map[string]string{
	"process":      "Take an envelope one step further, stdin to stdout",
	"create":       "Make an envelope from a request, stdin to stdout",
	"can-continue": "Check whether an envelope may go on, stdin to stdout",
	"result":       "Sum an envelope up for its user, stdin to stdout",
	"validate":     "List what is wrong with an envelope, stdin to stdout",
	"version":      "Print the versions of the exchange and of this build as JSON",
}

// fastExchange answers the commands of the envelope exchange, and the form without arguments,
// before anything else is built: they are called once per step of a pipeline, and their cost is the
// start of the process. done is false for everything else, for --help and for flags it does not
// know, which take the long way to the same code.
func fastExchange(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int, done bool) {
	if len(args) == 0 {
		if cli.IsTerminal(stdin) {
			return 0, false
		}
		return runExchange("", nil, stdin, stdout, stderr), true
	}
	if !slices.Contains(exchange.Names(), args[0]) {
		return 0, false
	}
	sets, ok := onlySets(args[1:])
	if !ok {
		return 0, false
	}
	return runExchange(args[0], sets, stdin, stdout, stderr), true
}

// runExchange runs one command, or without a name the one that stdin names. Every failure is exit
// code 1 (envelope §2.2).
func runExchange(name string, sets []string, stdin io.Reader, stdout, stderr io.Writer) int {
	h, err := config.LoadExchange(sets, os.LookupEnv)
	if err != nil {
		cli.Render(stderr, err, false)
		return cli.CodeFailed
	}
	b := obs.ReadBuild(version, revision)
	opt := exchange.Options{
		MaxBodyBytes: h.MaxBodyBytes,
		Engine:       envelope.NewEngine(envelope.Options{Now: time.Now, NewID: envelope.RandomID, StageOrder: h.DefaultStageOrder}),
		Version: exchange.Build{
			Server: b.Version, BuildTime: b.Time, Go: b.Go,
			Revision: b.Revision, Modified: b.Modified, OS: b.OS, Arch: b.Arch,
		},
	}
	if name == "" {
		return exchange.Bridge(stdin, stdout, stderr, opt)
	}
	return exchange.Command(name, stdin, stdout, stderr, opt)
}

// onlySets collects the values of --set; ok is false if there is anything else.
func onlySets(args []string) (sets []string, ok bool) {
	for i := 0; i < len(args); i++ {
		pair, joined := strings.CutPrefix(args[i], "--set=")
		switch {
		case joined:
		case args[i] == "--set" && i+1 < len(args):
			i++
			pair = args[i]
		default:
			return nil, false
		}
		sets = append(sets, pair)
	}
	return sets, true
}

// newExchangeCmds makes the verbs that help and completion show.
func newExchangeCmds() []*cobra.Command {
	cmds := make([]*cobra.Command, 0, len(exchangeVerbs))
	for _, name := range exchange.Names() {
		cmds = append(cmds, newExchangeCmd(name))
	}
	return cmds
}

func newExchangeCmd(name string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name,
		Short: exchangeVerbs[name],
		Long: exchangeVerbs[name] + ".\n\n" +
			"Needs no server and no file: of the settings only http.max_body_bytes and http.default_stage_order count, from --set or the\n" +
			"environment. Exit codes: 0 ok, 1 every failure; what failed is a JSON object on stdout.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Errorf(cli.CodeFailed, "cannot use argument %q: %s takes its input from stdin", args[0], name)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			sets, _ := cmd.Flags().GetStringArray("set")
			if code := runExchange(name, sets, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()); code != cli.CodeOK {
				return &cli.Error{Code: code}
			}
			return nil
		},
	}
	cmd.Flags().StringArray("set", nil, "set http.max_body_bytes or http.default_stage_order, `key=value`; repeatable")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return (&cli.Error{Code: cli.CodeFailed, Err: err}).WithHint(helpHint(cmd))
	})
	return cmd
}
