package main

import (
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
)

// clusterTimeout is the default of --timeout for an order to a cluster: partitions move one after
// the other.
const clusterTimeout = 30 * time.Second

// clusterOrder is a verb that has a cluster change who owns what.
type clusterOrder struct {
	verb, args, short, long, example string
	takes                            cobra.PositionalArgs
	form                             func(args []string) url.Values
}

// nodeForm is the form of an order about one node, "" for the one that is asked.
func nodeForm(args []string) url.Values { return url.Values{"node": {strings.Join(args, "")}} }

func clusterOrders() []clusterOrder {
	return []clusterOrder{
		{
			verb: "move", args: " PARTITION NODE", short: "Have another node own a partition of the journal", takes: cobra.ExactArgs(2),
			long: "Have NODE own a partition of the journal; that of a cluster with one is 0. Its\n" +
				"owner answers what was asked, hands the journal over, and goes on as a standby.\n" +
				"Any node takes the order. It is refused where NODE does not follow the journal.\n\n",
			example: "  trunkline cluster move 0 n2 --reason 'n1 gets a new disk'",
			form:    func(args []string) url.Values { return url.Values{"partition": {args[0]}, "node": {args[1]}} },
		},
		{
			verb: "drain", args: " [NODE]", short: "Have a node own nothing, for its maintenance", takes: cobra.MaximumNArgs(1),
			long: "Have all partitions of NODE move to others. It goes on as a standby, and takes\n" +
				"nothing over until 'trunkline cluster resume', or until it starts again. Without\n" +
				"NODE it is the one that is asked.\n\n",
			example: "  trunkline cluster drain\n  trunkline cluster drain n1 --reason 'kernel update'", form: nodeForm,
		},
		{
			verb: "resume", args: " [NODE]", short: "Have a drained node take over again", takes: cobra.MaximumNArgs(1),
			long: "Have NODE take partitions over again after 'trunkline cluster drain'. It gets\n" +
				"none back by that: see 'trunkline cluster rebalance'. Without NODE it is the one\n" +
				"that is asked.\n\n",
			example: "  trunkline cluster resume n1", form: nodeForm,
		},
		{
			verb: "rebalance", short: "Have the nodes own as many partitions each", takes: cobra.NoArgs,
			long: "Move partitions, one after the other, until the nodes that are not drained own\n" +
				"as many each, or one more. No more move than have to.\n\n",
			example: "  trunkline cluster rebalance", form: func([]string) url.Values { return url.Values{} },
		},
	}
}

func newClusterOrderCmd(o *clusterOrder) *cobra.Command {
	var f operatorFlags
	cmd := &cobra.Command{
		Use: o.verb + o.args, Short: o.short, Long: o.long + operatorHelp + "ordered what, and why.", Example: o.example, Args: o.takes,
	}
	f.add(cmd)
	timeout := cmd.Flags().Lookup("timeout")
	timeout.DefValue, f.timeout = clusterTimeout.String(), clusterTimeout
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.order(cmd, "cluster/"+o.verb, o.form(args), "'trunkline cluster status' lists the nodes"); err != nil {
			return err
		}
		done := strings.Join(append([]string{o.verb}, args...), " ")
		return cli.Show(cmd, struct {
			Done string `json:"done"`
		}{done}, [][]string{{"done", done}})
	}
	return cmd
}
