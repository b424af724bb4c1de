package main

import (
	"bytes"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/clientcontext"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/cmd/trunkline/loadgen"
	"trunkline/engine/kernel"
	"trunkline/engine/obs"
	"trunkline/handlers/ipc"
	"trunkline/handlers/threads/token"
)

func newCompletionCmd() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the completion script of a shell",
		Long: "Print a script that completes verbs, flags, names of methods, settings and their values, contexts and topics. " +
			"It needs nothing but the shell: neither the bash-completion package nor a call of compinit before it.\n\n" +
			"To have it in every new shell, let the shell's start file run the line of the example, or write the script to where the shell looks for completions.",
		Example: "  source <(trunkline completion bash)\n  source <(trunkline completion zsh)\n  trunkline completion fish | source\n" +
			"  trunkline completion powershell | Out-String | Invoke-Expression",
		ValidArgs: shells,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !slices.Contains(shells, args[0]) {
				return cli.Errorf(cli.CodeUsage, "cannot make a script for %q: want one of %s", args[0], strings.Join(shells, ", "))
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), new(bytes.Buffer)
			var err error
			switch args[0] {
			case "bash":
				err = root.GenBashCompletionV2(out, true)
				out.WriteString(bashWords)
			case "zsh":
				err = root.GenZshCompletion(out)
				first, rest, _ := strings.Cut(out.String(), "\n") // #compdef has to be the first line
				out.Reset()
				out.WriteString(first + "\n" + zshInit + rest)
			case "fish":
				err = root.GenFishCompletion(out, true)
			case "powershell":
				err = root.GenPowerShellCompletionWithDesc(out)
			}
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(out.Bytes())
			return err
		},
	}
}

// bashWords takes the place of a function of cobra's script that calls the bash-completion package.
// Bash splits a command line at = and : too. Words without a space between them are joined here.
const bashWords = `
# Sets cur, prev, words and cword. It is called where the bash-completion package is not loaded.
__trunkline_init_completion()
{
    local i word trimmed over rest=$COMP_LINE
    COMPREPLY=()
    words=()
    cword=0
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        word=${COMP_WORDS[i]}
        trimmed=${rest#"${rest%%[![:space:]]*}"}
        if ((i == 0)) || [[ $trimmed != "$rest" ]]; then
            words+=("$word")
        else
            words[${#words[@]}-1]+=$word
        fi
        rest=${trimmed#"$word"}
        if ((i == COMP_CWORD)); then
            cword=$((${#words[@]} - 1))
            cur=${words[cword]}
            over=$((${#COMP_LINE} - ${#rest} - COMP_POINT))
            ((over > 0 && over <= ${#cur})) && cur=${cur:0:${#cur}-over}
        fi
    done
    prev=
    ((cword > 0)) && prev=${words[cword - 1]}
    return 0
}
`

// zshInit loads the completion of zsh where no start file has.
const zshInit = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"

// completeAll registers what cobra cannot know about: the arguments of verbs and the values of
// flags. It is called for requests of completion only.
func completeAll(root *cobra.Command) {
	args := map[string]cobra.CompletionFunc{
		"trunkline call": completeMethods,
		"trunkline sub":  cobra.FixedCompletions(eventTypes(), cobra.ShellCompDirectiveNoFileComp),
		"trunkline pub":  cobra.FixedCompletions(nil, cobra.ShellCompDirectiveNoFileComp),
	}
	flags := map[string]cobra.CompletionFunc{
		"set":        completeSettings,
		"config":     cobra.FixedCompletions([]cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt),
		"log-level":  oneOf(obs.LogLevels()...),
		"log-format": oneOf(obs.LogFormats()...),
		"role":       oneOf(token.Participant.String(), token.Coordinator.String(), token.Auditor.String(), token.Operator.String()),
		"protocol":   oneOf(loadgen.Protocols()...),
	}
	eachCommand(root, func(cmd *cobra.Command) {
		if f := args[cmd.CommandPath()]; f != nil && cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = f
		}
		cmd.Flags().VisitAll(func(fl *pflag.Flag) {
			if f := flags[fl.Name]; f != nil {
				_ = cmd.RegisterFlagCompletionFunc(fl.Name, f) // fails where the command has one of its own
			}
		})
	})
}

// eachCommand calls f for a command and all below it.
func eachCommand(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, sub := range cmd.Commands() {
		eachCommand(sub, f)
	}
}

func oneOf[T ~string](values ...T) cobra.CompletionFunc {
	var list []cobra.Completion
	for _, v := range values {
		list = append(list, string(v))
	}
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// completeMethods completes the first argument of call.
func completeMethods(_ *cobra.Command, args []string, begun string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, m := range ipc.Methods() {
		if name := m.Service + "." + m.Name; !m.Stream && strings.HasPrefix(name, begun) {
			found = append(found, cobra.CompletionWithDesc(name, m.Doc))
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completeSettings completes the value of --set: a key and its =, then the values that it may have.
func completeSettings(_ *cobra.Command, _ []string, begun string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
	key, _, whole := strings.Cut(begun, "=")
	for _, s := range config.Settings() {
		if !whole && strings.HasPrefix(s.Key, begun) {
			found = append(found, cobra.CompletionWithDesc(s.Key+"=", s.Help))
		}
		if whole && s.Key == key {
			for _, v := range s.Values {
				found = append(found, key+"="+v)
			}
			return found, cobra.ShellCompDirectiveNoFileComp
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeContexts completes the name of a context.
func completeContexts(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	store, err := clientcontext.Open("")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := store.Names()
	return names, cobra.ShellCompDirectiveNoFileComp
}

// eventTypes are the types of events that a server itself publishes.
func eventTypes() (types []string) {
	for k := kernel.ProcessCreated; k <= kernel.ResourceExhausted; k++ {
		types = append(types, k.String())
	}
	for _, name := range []string{
		"tool.finished", "lease.issued", "lease.consumed", "lease.rejected", "breaker.opened", "breaker.half_open", "breaker.closed",
		"worker.started", "worker.exited", "run.opened", "run.closed", "selector.shadow",
	} {
		types = append(types, "toolhost."+name)
	}
	return types
}

// asksForCompletion reports whether the arguments are those of a completion script.
func asksForCompletion(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}
