package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/toolset"
	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost"
)

// The modes of the tool server (toolhost §2.1): what its clients put first on the command line.
const (
	modeList  = "--list"
	modeRun   = "--run"
	modeServe = "--serve"
	modeExec  = "tool_exec"
)

const toolUsage = `Usage:
  trunkline --list <plugin>
  trunkline --run <plugin> <aid>                                  request on stdin
  trunkline --serve <plugin> [--plugin <p>]... [--listen <addr>]... [--stdin]   one request a line
  trunkline tool_exec <aid>                                       request on stdin

<plugin> is builtin, a toolpack manifest (.json) or a directory of them; <addr> is tcp://host:port or unix:///path.
`

// fastTools answers the modes of the tool server before anything else is built. done is false for
// everything else.
func fastTools(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int, done bool) {
	if len(args) == 0 {
		return 0, false
	}
	switch mode := args[0]; {
	case mode == modeExec:
		if len(args) != 2 || strings.HasPrefix(args[1], "-") {
			if wantsHelp(args[1:]) {
				return 0, false
			}
			return usage(stderr), true
		}
		return toolExec(args[1], stdin, stdout), true
	case mode == modeList, mode == modeRun, mode == modeServe:
		if len(args) < 2 {
			return usage(stderr), true
		}
	case len(args) < 2 || !strings.HasPrefix(mode, "--") || isRootFlag(mode):
		return 0, false
	}
	return toolMode(args[0], args[1], args[2:], stdin, stdout, stderr), true
}

func wantsHelp(args []string) bool { return len(args) > 0 && (args[0] == "-h" || args[0] == "--help") }

// isRootFlag separates the program's own flags from an unknown mode.
func isRootFlag(arg string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	root := newRootCmd()
	root.InitDefaultHelpFlag()
	root.InitDefaultVersionFlag()
	return name == "" || root.Flags().Lookup(name) != nil || root.PersistentFlags().Lookup(name) != nil
}

func usage(stderr io.Writer) int {
	_, _ = io.WriteString(stderr, toolUsage)
	return toolhost.ExitUsage
}

// fault writes a protocol error to stdout.
func fault(stdout io.Writer, text string, code int) int {
	line := append(jsonx.AppendString([]byte(`{"ok":false,"error":`), text), "}\n"...)
	return answer(stdout, line, code)
}

// answer writes the one line of a reply. A reader that is gone has lost it; the exit code shows
// that.
func answer(stdout io.Writer, line []byte, code int) int {
	if _, err := stdout.Write(line); err != nil && code == toolhost.ExitOK {
		return 1
	}
	return code
}

// toolMode runs the modes that name a plugin; it is loaded first.
func toolMode(mode, plugin string, rest []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var serve *serveFlags
	if mode == modeServe {
		var ok bool
		if serve, ok = parseServe(rest, stderr); !ok {
			return toolhost.ExitUsage
		}
	}
	o := toolset.Options{Plugins: []string{plugin}, BreakerThreshold: -1, BreakerCooldown: -1}
	serve.apply(&o)
	set, err := toolset.Open(o)
	if err != nil {
		return fault(stdout, err.Error(), toolhost.ExitPlugin)
	}
	defer set.Close()
	switch mode {
	case modeList:
		return answer(stdout, (&toolhost.Single{Registry: set.Registry, Unusable: set.Unusable()}).List(), toolhost.ExitOK)
	case modeRun:
		if len(rest) == 0 || rest[0] == "" {
			return fault(stdout, "missing aid", toolhost.ExitUsage)
		}
		single := toolhost.Single{Registry: set.Registry, Timeout: toolset.ToolTimeout()}
		line, code := single.Run(rest[0], stdin)
		return answer(stdout, line, code)
	case modeServe:
		return serveTools(set, serve, stdin, stdout, stderr)
	}
	return fault(stdout, "unknown mode: "+mode, toolhost.ExitUsage)
}

// toolExec is the mode tool_exec: all built-in tools, and those of the root's own toolpack.
func toolExec(aid string, stdin io.Reader, stdout io.Writer) int {
	o := toolset.Options{Builtins: true, BreakerThreshold: -1, BreakerCooldown: -1}
	root := os.Getenv("MACHINA_ROOT")
	if root == "" {
		root = "."
	}
	if pack := toolset.Tier0(root); pack != "" {
		o.Plugins = []string{pack}
	}
	set, err := toolset.Open(o)
	if err != nil {
		return fault(stdout, err.Error(), toolhost.ExitPlugin)
	}
	defer set.Close()
	single := toolhost.Single{Registry: set.Registry, Timeout: toolset.ToolTimeout(), Exec: true}
	line, code := single.Run(aid, stdin)
	return answer(stdout, line, code)
}

// newToolExecCmd makes the verb that help and completion show; fastTools answers it.
func newToolExecCmd() *cobra.Command {
	return &cobra.Command{
		Use:   modeExec + " AID",
		Short: "Run one tool, its request on stdin (modes " + modeList + ", " + modeRun + ", " + modeServe + " as well)",
		Long:  fmt.Sprintf("Run one tool with the request on stdin and print one line of JSON.\n\n%s", toolUsage),
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}
