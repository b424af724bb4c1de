package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
)

func main() {
	keepDescriptors()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program for one set of arguments; it returns the exit code. What it does never depends on the name it was
// started under.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if code, done := fastTools(args, stdin, stdout, stderr); done {
		return code
	}
	if code, done := fastExchange(args, stdin, stdout, stderr); done {
		return code
	}
	root := newRootCmd()
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, args, err) })
	started := markStart(root)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	if err != nil && !*started {
		err = cli.AsUsage(err, helpHint(cmd))
	}
	cli.Render(stderr, err, cli.JSON(cmd) || cli.WantsJSON(args))
	return cli.Exit(err)
}
