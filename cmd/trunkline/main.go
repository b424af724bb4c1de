package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/handlers/toolhost/procgroup"
)

func init() {
	if procgroup.Adopts() {
		runtime.LockOSThread() // see ReapOrphans
	}
}

func main() {
	if err := hideSecrets(); err != nil {
		fmt.Fprintf(os.Stderr, "warning: tools can read the tokens of this process in its environment: %v\n", err)
	}
	keepLostStdout()
	keepDescriptors()
	if procgroup.Adopts() {
		go exit()
		procgroup.ReapOrphans()
	}
	exit()
}

// exit runs the program to its end.
func exit() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the whole program for one set of arguments; it returns the exit code. What it does never
// depends on the name it was started under.
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
	out := &written{Writer: stdout}
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		root.SetOut(out) // cobra drops the errors of this one
		help(cmd, args)
	})
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	if err != nil && !*started {
		err = cli.AsUsage(err, helpHint(cmd))
	}
	if err == nil {
		err = out.err
	}
	cli.Render(stderr, err, cli.JSON(cmd) || cli.WantsJSON(args))
	return cli.Exit(err)
}

// written remembers the first error of a stdout whose writers do not look.
type written struct {
	io.Writer
	mu  sync.Mutex
	err error
}

// failed reports whether anything was lost.
func (w *written) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil
}

// Write implements io.Writer.
func (w *written) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	return n, err
}
