package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/engine/journal/replicated/natslog"
	"trunkline/engine/obs"
	"trunkline/fuzz/kit/memstore"
	"trunkline/fuzz/kit/memstream"
)

func FuzzCopyReport(f *testing.F) {
	b, _ := json.Marshal(copyReport{Node: "n1", Seq: 7, Index: 8, Hash: 9, Damage: "x", Ask: true})
	f.Add(b)
	f.Add([]byte(`{"node":"n1"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeReport(b)
		if err != nil {
			return
		}
		back, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := decodeReport(back); len(back) <= maxReport && (err != nil || again != r) {
			t.Errorf("%+v becomes %+v: %v", r, again, err)
		}
	})
}

func TestCopyReportLimits(t *testing.T) {
	r := copyReport{Node: "n"}
	b, _ := json.Marshal(r)
	b = append(b, bytes.Repeat([]byte(" "), maxReport-len(b))...)
	if got, err := decodeReport(b); err != nil || got != r {
		t.Errorf("at the limit: %+v, %v", got, err)
	}
	if _, err := decodeReport(append(b, ' ')); err == nil {
		t.Error("a report above the limit is taken")
	}
	if _, err := decodeReport([]byte(`{"seq":1}`)); err == nil {
		t.Error("a report of no node is taken")
	}
}

// watchOf returns that of node b of three.
func watchOf(t *testing.T) *copyWatch {
	n := nodeOf(t, "b", Config{})
	w := newCopyWatch(n.NewLease(0, false), nil)
	n.watches[0].Store(w)
	return w
}

// TestNoCopyIsGivenUpTooEarly: a node begins again only while each other one has all of the journal
// and has just reported a whole copy.
func TestNoCopyIsGivenUpTooEarly(t *testing.T) {
	asked := time.Now()
	whole := []natslog.Keeper{{Server: "a", Leads: true, Current: true}, {Server: "b"}, {Server: "c", Current: true}}
	f := func(keepers []natslog.Keeper, heard map[string]*heardReport, want string) {
		t.Helper()
		w := watchOf(t)
		w.heard = heard
		err := w.othersAreWhole(keepers, asked)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	now := &heardReport{at: asked.Add(time.Second), copyReport: copyReport{Whole: true}}
	both := map[string]*heardReport{"a": now, "c": now}
	f(whole, both, "")
	f(whole[:2], both, "2 nodes keep the journal, want 3")
	f(whole, map[string]*heardReport{"a": now}, "node c has not reported")
	f(whole, map[string]*heardReport{"a": now, "c": {at: asked.Add(-time.Second)}}, "node c has not reported")
	f(whole, map[string]*heardReport{"a": now, "c": {at: now.at, copyReport: copyReport{Damage: "rot"}}}, "the copy of node c is damaged too: rot")
	f(whole, map[string]*heardReport{"a": now, "c": {at: now.at}}, "node c has not verified all of its copy")
	behind := []natslog.Keeper{whole[0], whole[1], {Server: "c"}}
	f(behind, both, "node c does not have all of the journal")
}

// TestSuccessor: a node with a whole copy is to lead the stream, this one first.
func TestSuccessor(t *testing.T) {
	f := func(damage error, keepers []natslog.Keeper, heard map[string]*heardReport, want string) {
		t.Helper()
		w := watchOf(t)
		w.damage, w.heard = damage, heard
		if got := w.successor(keepers); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	bad := map[string]*heardReport{"c": {copyReport: copyReport{Damage: "rot"}}}
	from := []natslog.Keeper{{Server: "a", Leads: true, Current: true}, {Server: "c", Current: true}, {Server: "b", Current: true}}
	f(nil, from, nil, "b")
	f(errors.New("rot"), from, nil, "c")
	f(errors.New("rot"), from, bad, "")
	f(nil, []natslog.Keeper{from[0], {Server: "c"}, {Server: "b"}}, nil, "")
}

// journalOf is a journal of some records in memory, and what a node keeps of it.
func journalOf(t *testing.T, recs ...string) (*replicated.Store, *memstream.Client) {
	t.Helper()
	c := memstream.New().Client(1, memstream.Faults{})
	local, err := memstore.New(memstore.Options{}).Open()
	if err != nil {
		t.Fatal(err)
	}
	s, err := replicated.Open(t.Context(), replicated.Config{Stream: c, Chunks: c, Local: local})
	if err != nil {
		t.Fatal(err)
	}
	log, err := journal.Open(s, journal.Config{})
	if err == nil {
		err = log.Replay(0, func(journal.Index, []byte) error { return nil })
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	for _, rec := range recs {
		log.Append([]byte(rec))
		if err := log.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s, c
}

// TestReportsAreCompared: a node compares the end of another copy with its own, once it has what is
// compared, and finds the node with another journal.
func TestReportsAreCompared(t *testing.T) {
	s, c := journalOf(t, "one", "two", "three")
	w := watchOf(t)
	w.node.log = slog.New(slog.DiscardHandler)
	w.audit = s.NewAudit(c, 0, journal.Always)
	tip, err := w.audit.Tip()
	if err != nil {
		t.Fatal(err)
	}
	hear := func(node string, r copyReport) *heardReport {
		r.Node = node
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		w.node.hearCopies(b)
		return w.heard[node]
	}
	same := copyReport{Seq: tip.Seq, Index: tip.Index, Hash: tip.Hash}
	if h := hear("a", same); !h.compared || h.differs {
		t.Errorf("the same journal: %+v", h)
	}
	other := same
	other.Hash++
	if h := hear("c", other); !h.compared || !h.differs || w.differing() != 1 {
		t.Errorf("another journal: %+v", h)
	}
	other = same
	other.Seq++
	if h := hear("c", other); h.compared || w.differing() != 0 {
		t.Errorf("a journal that goes on behind: %+v", h)
	}
	if hear("d", same); len(w.heard) != 2 {
		t.Error("a node that is not of the cluster is heard")
	}
	if r := hear("a", copyReport{Partition: 1}); r.Seq != same.Seq {
		t.Error("a report of a partition that is not there is heard")
	}
	if hear("a", copyReport{Partition: -1}); w.heard["a"].Seq != same.Seq {
		t.Error("a report of a partition that cannot be is heard")
	}
	hear("a", copyReport{Ask: true})
	hear("a", copyReport{Ask: true, Doubt: true})
	if len(w.ask) != 1 || !w.doubt {
		t.Error("a question or a doubt is forgotten")
	}
}

// TestShownCopies: /cluster shows the copies of each partition, and what is wrong with them.
func TestShownCopies(t *testing.T) {
	w := watchOf(t)
	w.at = time.Now()
	w.own = copyReport{Index: 7, Hash: 0xab}
	w.heard["a"] = &heardReport{copyReport: copyReport{Node: "a", Seq: 5, Index: 6}, compared: true, differs: true}
	w.heard["c"] = &heardReport{copyReport: copyReport{Node: "c", Damage: "rot"}}
	show := func(want string) []obs.ClusterCopy {
		t.Helper()
		copies, problems := w.copies()
		if got := strings.Join(problems, "; "); got != want {
			t.Errorf("the problem is %q", got)
		}
		return copies
	}
	got := show("node a has another journal than this one at message 5; the copy of the journal on node c is damaged")
	if len(got) != 3 || !got[0].Differs || !got[0].Compared || got[1].Node != "b" || got[1].Index != 7 || got[1].Hash != "00000000000000ab" || got[2].Damage != "rot" {
		t.Errorf("%+v", got)
	}
	if w.differing() != 1 || w.isDamaged() || w.node.Damaged() {
		t.Error("the metrics are wrong")
	}
	w.node.cfg.Partitions, w.heard, w.damage, w.own = 2, nil, errors.New("rot"), copyReport{Damage: "rot"}
	if got := show("the copy of the journal on this node is damaged (partition 0): rot"); len(got) != 1 || got[0].Damage != "rot" || !w.isDamaged() {
		t.Errorf("%+v", got)
	}
	var none *copyWatch
	if copies, problems := none.copies(); copies != nil || problems != nil || none.isDamaged() || none.differing() != 0 {
		t.Error("no cluster, and a damaged copy")
	}
}

// TestAllPartitionsAreMadeAnew or none: a node that does not follow all yet keeps what it has.
func TestAllPartitionsAreMadeAnew(t *testing.T) {
	s, c := journalOf(t, "one")
	w := watchOf(t)
	w.node.cfg.Partitions, w.node.watches = 2, make([]atomic.Pointer[copyWatch], 2)
	w.node.watches[0].Store(w)
	w.audit = s.NewAudit(c, 0, journal.Always)
	if err := w.renew(t.Context(), time.Now()); err == nil || !strings.Contains(err.Error(), "does not follow all partitions") {
		t.Errorf("%v", err)
	}
}
