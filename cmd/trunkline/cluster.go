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

func newClusterStatusCmd() *cobra.Command {
	var f adminQuery
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show which node owns the journal, and which nodes are seen",
		Long: "Show what a node knows of its cluster: its role, the node that owns the journal,\n" +
			"and the other nodes. The exit code is 1 while it knows of no owner or sees no\n" +
			"majority.",
		Example: "  trunkline cluster status\n  trunkline cluster status --admin 127.0.0.1:50092 --json",
		Args:    cobra.NoArgs,
	}
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runClusterStatus(cmd, &f) }
	return cmd
}

func runClusterStatus(cmd *cobra.Command, f *adminQuery) error {
	if err := f.find(cmd); err != nil {
		return err
	}
	var c ops.Cluster
	if err := f.ask(cmd.Context(), "/cluster", &c); err != nil {
		return err
	}
	if err := cli.Show(cmd, c, clusterRows(&c)); err != nil {
		return err
	}
	if !c.Quorum {
		return cli.Errorf(cli.CodeFailed, "node %s sees no majority of its cluster: no change is acknowledged", c.Node)
	}
	for _, p := range append([]ops.ClusterPartition{c.ClusterPartition}, c.Partitions...) {
		if p.Owner == "" {
			return cli.Errorf(cli.CodeFailed, "node %s knows of no owner of the journal (partition %d)", c.Node, p.Partition)
		}
	}
	return nil
}

// clusterRows shows the state of a node: in rows of its own what differs between partitions.
func clusterRows(c *ops.Cluster) [][]string {
	rows := [][]string{{"CLUSTER", c.Name}, {"NODE", c.Node}}
	if c.Drained {
		rows = append(rows, []string{"DRAINED", "yes: it takes nothing over"})
	}
	if len(c.Partitions) == 0 {
		rows = append(rows, []string{"ROLE", c.Role}, []string{"OWNER", ownerText(&c.ClusterPartition)}, []string{"RECORDS", strconv.FormatUint(c.Index, 10)})
	}
	for i := range c.Partitions {
		p := &c.Partitions[i]
		rows = append(rows, []string{fmt.Sprintf("PARTITION %d", p.Partition), fmt.Sprintf("%s, owner %s, %d records", p.Role, ownerText(p), p.Index)})
	}
	rows = append(rows, []string{"LEASE", secondsText(c.LeaseSeconds)},
		[]string{"FORWARDED", fmt.Sprintf("%d to the owner, %d from other nodes", c.Forwarded, c.Taken)}, []string{"NODES", peersText(c)})
	if c.Role == "standby" && len(c.Partitions) == 0 {
		rows = append(rows, []string{"SILENT", secondsText(c.SilentSeconds)})
	}
	if c.Problem != "" {
		rows = append(rows, []string{"PROBLEM", c.Problem})
	}
	return rows
}

func ownerText(p *ops.ClusterPartition) string {
	if p.Owner == "" {
		return "none is known"
	}
	return p.Owner + " at " + p.OwnerAddr
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
