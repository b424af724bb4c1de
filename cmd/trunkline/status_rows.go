package main

import (
	"fmt"
	"hash/fnv"
	"io"
	"strconv"
	"strings"
	"time"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/engine/obs"
	"trunkline/handlers/ipc/ipcclient"
	"trunkline/handlers/ops"
)

// rows is what status shows to people.
func (s *systemState) rows() [][]string {
	var t table
	if a := s.Admin; a != nil && a.Error == "" {
		a.rows(&t)
	}
	if k := s.Kernel; k != nil && k.Error == "" {
		k.rows(&t)
	}
	return t
}

func (s *adminState) rows(t *table) {
	t.add("admin", "%s", s.Addr)
	t.add("version", "%s (%s)", s.Build.Version, s.Build.Revision)
	t.add("alive", "%t", s.Alive)
	t.add("ready", "%s", strings.Join(append([]string{strconv.FormatBool(s.Ready)}, s.Reasons...), " "))
	if s.recovering() {
		t.add("recovery", "%s", s.howFar())
	}
	if s.Store != nil {
		if c := s.Store.Cluster; c != nil {
			t.add("cluster", "%s: %s", c.Cluster, clusterLine(c))
		}
		t.add("store", "%s", storeLine(s.Store))
	}
}

// clusterLine is what a server is in its cluster. What the kernel endpoint answers is the owner's.
func clusterLine(c *obs.Standing) string {
	text := c.Standby()
	if text == "" {
		return c.Node + " owns the journal"
	}
	return cli.Visible(text) + "; what the kernel answers comes from the owner"
}

// howFar is the recovery in one line.
func (s *adminState) howFar() string {
	r := s.Recovery
	if r.Total == 0 {
		return r.Phase
	}
	text := fmt.Sprintf("%s, %.1f %%", r.Phase, r.Percent)
	if r.ETASecs != nil {
		text += fmt.Sprintf(", %.1f s to go", *r.ETASecs)
	}
	return text
}

// storeLine is the store in one line.
func storeLine(s *ops.Store) string {
	parts := []string{s.Mode}
	if s.Dir != "" {
		parts = append(parts, s.Dir)
	}
	if j := s.Journal; j != nil && s.Recovery == nil {
		parts = append(parts,
			fmt.Sprintf("durable %d of %d", j.Durable, j.Appended),
			fmt.Sprintf("queue %d (%d bytes)", j.QueueRecords, j.QueueBytes),
			lastSnapshot(j.LastSnapshot))
		if j.Error != "" {
			parts = append(parts, j.Error)
		}
	}
	return strings.Join(append(parts, s.Warnings...), ", ")
}

func lastSnapshot(s *ops.Snapshot) string {
	if s == nil {
		return "no snapshot"
	}
	age := time.Duration(s.AgeSecs * float64(time.Second)).Round(time.Second)
	return fmt.Sprintf("snapshot at %d (%s ago)", s.Index, age)
}

func (s *kernelState) rows(t *table) {
	r := &s.reply
	t.add("kernel", "%s", s.Addr)
	t.add("processes", "%d (%s)", r.Processes.Total, byState(r.Processes.ByState))
	t.add("sessions", "%d", r.Orchestration.ActiveSessions)
	t.add("events published", "%d", r.Commbus.EventsPublished)
	t.add("commands sent", "%d", r.Commbus.CommandsSent)
	t.add("queries executed", "%d", r.Commbus.QueriesExecuted)
	t.add("subscribers", "%d", r.Commbus.ActiveSubscribers)
	if r.Digest != nil {
		digestRows(t, r.Digest, s.Digest)
	}
}

func byState(c ipcclient.StateCounts) string {
	return fmt.Sprintf("new %d, ready %d, running %d, waiting %d, blocked %d, terminated %d, zombie %d",
		c.New, c.Ready, c.Running, c.Waiting, c.Blocked, c.Terminated, c.Zombie)
}

// digestNumber returns one number for all digests.
func digestNumber(d *ipcclient.Digest) string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, strings.Join(d.Kernel, " ")+"\n"+strings.Join(d.Orchestration, " "))
	return fmt.Sprintf("%016x", h.Sum64())
}

// perRow is how many digests stand in one row.
const perRow = 4

func digestRows(t *table, d *ipcclient.Digest, whole string) {
	note := ""
	switch {
	case d.Index == 0: // without a journal, changes are not counted
	case d.Index == d.Through:
		note = fmt.Sprintf(" (at index %d)", d.Index)
	default:
		note = fmt.Sprintf(" (of no one moment: %d records were written meanwhile)", d.Through-d.Index)
	}
	t.add("digest", "%s%s", whole, note)
	list := func(name string, sums []string) {
		for from := 0; from < len(sums); from += perRow {
			to := min(from+perRow, len(sums))
			t.add(fmt.Sprintf("%s %d-%d", name, from, to-1), "%s", strings.Join(sums[from:to], " "))
		}
	}
	list("kernel", d.Kernel[:max(len(d.Kernel)-1, 0)])
	if n := len(d.Kernel); n > 0 {
		t.add("kernel common", "%s", d.Kernel[n-1])
	}
	list("orchestration", d.Orchestration)
}
