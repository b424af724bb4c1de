package main

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/obs"
	"trunkline/handlers/ops"
)

func newClusterCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Show the cluster of a running server, and change who owns what",
		Long: "Show the cluster that a running server belongs to (cluster.mode), and hand over\n" +
			"what nodes own. Each node answers on its admin endpoint.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newClusterStatusCmd())
	for _, o := range clusterOrders() {
		cmd.AddCommand(newClusterOrderCmd(&o))
	}
	return cmd
}

// checkTimeout is the default of --timeout with --check: nodes have 3 s to verify their copies.
const checkTimeout = 10 * time.Second

func newClusterStatusCmd() *cobra.Command {
	var f adminQuery
	var check bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show which node owns the journal, and which nodes are seen",
		Long: "Show what a node knows of its cluster: its role, the node that owns the journal,\n" +
			"the nodes' copies of it, and all nodes with their last records and how many they\n" +
			"lack of the owner's (LAG). Any node can be asked. The exit code is 1 while it\n" +
			"knows of no owner, sees no majority, or a copy is damaged or differs.",
		Example: "  trunkline cluster status\n  trunkline cluster status --check\n  trunkline cluster status --admin 127.0.0.1:50092 --json",
		Args:    cobra.NoArgs,
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&check, "check", false, "have all nodes verify a part of their copies now, within 10s")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if check && !cmd.Flags().Changed("timeout") {
			f.timeout = checkTimeout
		}
		return runClusterStatus(cmd, &f, check)
	}
	return cmd
}

func runClusterStatus(cmd *cobra.Command, f *adminQuery, check bool) error {
	if err := f.find(cmd); err != nil {
		return err
	}
	var c ops.Cluster
	path := "/cluster"
	if check {
		path += "?check=true"
	}
	if err := f.ask(cmd.Context(), path, &c); err != nil {
		return err
	}
	err := cli.Show(cmd, c, clusterRows(&c))
	if err == nil && !cli.JSON(cmd) {
		fmt.Fprintln(cmd.OutOrStdout())
		err = cli.Show(cmd, nil, nodeRows(&c))
	}
	switch {
	case err != nil:
		return err
	case !c.Quorum:
		return cli.Errorf(cli.CodeFailed, "node %s sees no majority of its cluster: no change is acknowledged", c.Node).
			WithHint("start the nodes that are not seen, with their directories; docs/cluster.md has more under 'No majority'")
	}
	for _, p := range append([]obs.ClusterPartition{c.ClusterPartition}, c.Partitions...) {
		if p.Owner == "" {
			return cli.Errorf(cli.CodeFailed, "node %s knows of no owner of the journal (partition %d)", c.Node, p.Partition).
				WithHint("ask another node with --admin; docs/cluster.md has more under 'No owner'")
		}
		if _, whole := copiesText(p.Copies); !whole {
			return cli.Errorf(cli.CodeFailed, "a copy of the journal is damaged, or differs from that of node %s (partition %d)", c.Node, p.Partition).
				WithHint("docs/cluster.md has more under 'A damaged replica' and 'A node that differs'")
		}
	}
	return nil
}

// copiesText lists what is known of the copies of a journal, and returns false where one is not
// what it must be.
func copiesText(copies []obs.ClusterCopy) (text string, whole bool) {
	var all []string
	whole = true
	for i := range copies {
		switch r := &copies[i]; {
		case r.Damage != "":
			all = append(all, cli.Visible(r.Node)+" (damaged)")
			whole = false
		case r.Differs:
			all = append(all, cli.Visible(r.Node)+" (differs)")
			whole = false
		default:
			all = append(all, fmt.Sprintf("%s to %d", cli.Visible(r.Node), r.Index))
		}
	}
	return strings.Join(all, ", "), whole
}

// clusterRows is what is known of the cluster as a whole: in rows of its own what differs between
// partitions.
func clusterRows(c *ops.Cluster) [][]string {
	var t table
	t.add("CLUSTER", "%s", c.Name)
	t.add("NODE", "%s", c.Node)
	if c.Drained {
		t.add("DRAINED", "yes: it takes nothing over")
	}
	if len(c.Partitions) == 0 {
		t.add("ROLE", "%s", c.Role)
		t.add("OWNER", "%s", ownerText(&c.ClusterPartition))
		if c.OwnerFence > 0 {
			t.add("FENCE", "%d", c.OwnerFence)
		}
		t.add("RECORDS", "%d", c.Index)
	}
	for i := range c.Partitions {
		p := &c.Partitions[i]
		t.add(fmt.Sprintf("PARTITION %d", p.Partition), "%s, owner %s, %d records%s", p.Role, ownerText(p), p.Index, heardText(p))
	}
	t.add("LEASE", "%s", secondsText(c.LeaseSeconds))
	t.add("FORWARDED", "%d to the owner, %d from other nodes", c.Forwarded, c.Taken)
	if c.Role != obs.RoleOwner && len(c.Partitions) == 0 {
		t.add("SILENT", "%s", secondsText(c.SilentSeconds))
	}
	if text, _ := copiesText(c.Copies); text != "" && len(c.Partitions) == 0 {
		t.add("COPIES", "%s", text)
	}
	for i := range c.Partitions {
		if text, _ := copiesText(c.Partitions[i].Copies); text != "" {
			t.add(fmt.Sprintf("COPIES %d", i), "%s", text)
		}
	}
	if c.Mode == config.ClusterNATS {
		t.add("SERVERS", "%s", peersText(c))
	}
	if c.Problem != "" {
		t.add("PROBLEM", "%s", cli.Visible(c.Problem))
	}
	return t
}

// nodeRows is the table of nodes.
func nodeRows(c *ops.Cluster) [][]string {
	rows := [][]string{{"NODE", "ROLE", "SEEN", "RECORDS", "LAG", "VERSION", "ADMIN"}}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		seen, lag := "never", "-"
		switch {
		case n.Node == c.Node:
			seen = "this node"
		case n.HeardSeconds != nil && n.Seen:
			seen = "yes"
		case n.HeardSeconds != nil:
			seen = secondsText(*n.HeardSeconds) + " ago"
		}
		if n.Lag != nil {
			lag = strconv.FormatUint(*n.Lag, 10)
		}
		rows = append(rows, []string{cli.Visible(n.Node), cli.Visible(n.RoleText()), seen, strconv.FormatUint(n.Index, 10), lag,
			cli.Visible(cmp.Or(n.Version, "-")), cli.Visible(cmp.Or(n.Admin, "-"))})
	}
	return rows
}

func ownerText(p *obs.ClusterPartition) string {
	if p.Owner == "" {
		return "none is known"
	}
	return p.Owner + " at " + p.OwnerAddr
}

// heardText is how old what a node that does not own a partition knows of it is.
func heardText(p *obs.ClusterPartition) string {
	if p.Role == obs.RoleOwner {
		return ""
	}
	return ", heard " + secondsText(p.SilentSeconds) + " ago"
}

// peersText lists NATS servers; those that are not seen are marked.
func peersText(c *ops.Cluster) string {
	names := make([]string, 0, len(c.Peers))
	for _, p := range c.Peers {
		if p.Seen {
			names = append(names, p.Node)
		} else {
			names = append(names, p.Node+" (not seen)")
		}
	}
	return strings.Join(names, ", ")
}

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
