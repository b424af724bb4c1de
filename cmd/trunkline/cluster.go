package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/handlers/ops"
)

func newClusterCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Show the cluster that a running server belongs to",
		Long: "Show the cluster that a running server belongs to (cluster.mode). Each node\n" +
			"answers for itself, on its admin endpoint.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newClusterStatusCmd())
	return cmd
}

func newClusterStatusCmd() *cobra.Command {
	var f adminQuery
	var check bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show which node owns the journal, and which nodes are seen",
		Long: "Show what a node knows of its cluster: its role, the node that owns the journal,\n" +
			"and the other nodes with their copies of the journal. The exit code is 1 while it\n" +
			"knows of no owner, sees no majority, or a copy is damaged or differs.",
		Example: "  trunkline cluster status\n  trunkline cluster status --check\n  trunkline cluster status --admin 127.0.0.1:50092 --json",
		Args:    cobra.NoArgs,
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&check, "check", false, "have all nodes verify a part of their copies now")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runClusterStatus(cmd, &f, check) }
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
	rows := [][]string{
		{"CLUSTER", c.Name}, {"NODE", c.Node}, {"ROLE", c.Role}, {"OWNER", ownerText(&c)},
		{"RECORDS", strconv.FormatUint(c.Index, 10)}, {"LEASE", secondsText(c.LeaseSeconds)},
		{"FORWARDED", fmt.Sprintf("%d to the owner, %d from other nodes", c.Forwarded, c.Taken)}, {"NODES", peersText(&c)},
	}
	copies, whole := copiesText(&c)
	if copies != "" {
		rows = append(rows, []string{"COPIES", copies})
	}
	if c.Role == "standby" {
		rows = append(rows, []string{"SILENT", secondsText(c.SilentSeconds)})
	}
	if c.Problem != "" {
		rows = append(rows, []string{"PROBLEM", c.Problem})
	}
	if err := cli.Show(cmd, c, rows); err != nil {
		return err
	}
	switch {
	case !c.Quorum:
		return cli.Errorf(cli.CodeFailed, "node %s sees no majority of its cluster: no change is acknowledged", c.Node)
	case c.Owner == "":
		return cli.Errorf(cli.CodeFailed, "node %s knows of no owner of the journal", c.Node)
	case !whole:
		return cli.Errorf(cli.CodeFailed, "a copy of the journal is damaged, or differs from that of node %s", c.Node)
	}
	return nil
}

func ownerText(c *ops.Cluster) string {
	if c.Owner == "" {
		return "none is known"
	}
	return c.Owner + " at " + c.OwnerAddr
}

// peersText lists the other nodes; those that are not seen are marked.
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

// copiesText lists what is known of the copies of the journal, and returns false where one is not
// what it must be.
func copiesText(c *ops.Cluster) (text string, whole bool) {
	var all []string
	whole = true
	add := func(node string, r *ops.ClusterReplica) {
		switch {
		case r == nil:
			return
		case r.Damage != "":
			all = append(all, node+" (damaged)")
		case r.Differs:
			all = append(all, node+" (differs)")
		default:
			all = append(all, fmt.Sprintf("%s to %d", node, r.Index))
		}
		whole = whole && r.Damage == "" && !r.Differs
	}
	add(c.Node, c.Replica)
	for _, p := range c.Peers {
		add(p.Node, p.Replica)
	}
	return strings.Join(all, ", "), whole
}
