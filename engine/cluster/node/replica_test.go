package node

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// held waits until a node keeps some messages of the stream.
func (r *rig) held(id string, last uint64) {
	r.t.Helper()
	until(r.t, fmt.Sprintf("node %s keeps %d messages", id, last), func() (uint64, bool) {
		_, got, _, err := r.open[id].Held(journal.Name)
		return got, err == nil && got == last
	})
}

// rot flips a bit of the files of a node that is stopped, where some text is.
func (r *rig) rot(id, text string) {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(r.dirs[id], storeDir, "*", "streams", journal.Name, "msgs", "*.blk"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			r.t.Fatal(err)
		}
		if at := bytes.Index(b, []byte(text)); at >= 0 {
			b[at] ^= 1
			if err := os.WriteFile(file, b, 0o600); err != nil {
				r.t.Fatal(err)
			}
			return
		}
	}
	r.t.Fatalf("%v do not hold %q", files, text)
}

// whole reports whether a node has all of its messages as they were written.
func (r *rig) whole(id string) bool {
	r.t.Helper()
	first, last, deleted, err := r.open[id].Held(journal.Name)
	if err != nil {
		r.t.Fatal(err)
	}
	for seq := first; seq <= last; seq++ {
		subject, _, data, err := r.open[id].Load(journal.Name, seq)
		if err != nil {
			return false
		}
		if want := fmt.Sprintf("message %d", seq); string(data) != want || subject != "journal.x" {
			r.t.Errorf("node %s: message %d is %q of %s", id, seq, data, subject)
		}
	}
	return deleted == 0
}

// TestReplica: each node shows what it keeps itself. One that has rotted shows that it lacks
// messages, begins again when it is asked to, and then has all of them from the others.
func TestReplica(t *testing.T) {
	t.Parallel()
	r := cluster(t, nil)
	if _, _, _, err := r.open["a"].Held(journal.Name); !errors.Is(err, errNoReplica) {
		t.Errorf("a stream that is not there: %v", err)
	}
	if _, _, _, err := r.open["a"].Load(journal.Name, 1); !errors.Is(err, errNoReplica) {
		t.Errorf("a message of a stream that is not there: %v", err)
	}
	create(t, r.open["a"])
	const count = 20
	for i := range count {
		publish(t, r.open["a"], fmt.Sprintf("message %d", i+1))
	}
	leaders := 0
	for id, n := range r.open {
		r.held(id, count)
		if !r.whole(id) {
			t.Errorf("node %s is not whole", id)
		}
		if n.Leads(journal.Name) {
			leaders++
		}
	}
	if leaders != 1 {
		t.Errorf("%d nodes lead the stream", leaders)
	}

	r.stop("b")
	r.rot("b", "message 7")
	r.start("b")
	r.join("b")
	r.held("b", count)
	if r.whole("b") {
		t.Error("a node shows nothing of what has rotted")
	}
	if err := r.open["b"].Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.stop("b")
	r.start("b")
	r.join("b")
	r.held("b", count)
	if !r.whole("b") {
		t.Error("a node that has started over is not whole")
	}
	if _, err := os.Stat(filepath.Join(r.dirs["b"], damagedDir)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(r.dirs["b"], renewFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it starts over at every start: %v", err)
	}
	heard := make(chan string, 3)
	for id, n := range r.open {
		err := n.Hear("reports", func(b []byte) {
			select {
			case heard <- id + string(b):
			default: // there is one report after the other
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	got := make(map[string]bool)
	until(t, "all nodes hear a report", func() (map[string]bool, bool) {
		if err := r.open["c"].Send("reports", []byte("!")); err != nil {
			t.Fatal(err)
		}
		for len(heard) > 0 {
			got[<-heard] = true
		}
		return got, got["a!"] && got["b!"] && got["c!"]
	})
}

// TestRenewKeepsTheOnlyCopy: a node keeps its files where another one does not answer, or has been
// started again since: it may have lost its own meanwhile.
func TestRenewKeepsTheOnlyCopy(t *testing.T) {
	t.Parallel()
	r := cluster(t, nil)
	create(t, r.open["a"])
	publish(t, r.open["a"], "message 1")
	r.held("b", 1)
	if err := r.open["b"].Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.stop("b")
	r.stop("c")
	r.start("c")
	r.start("b")
	r.join("a", "b", "c")
	r.held("b", 1)
	if text := r.log.String(); !strings.Contains(text, "was started again meanwhile") ||
		strings.Contains(text, "copying the journal from the other nodes") {
		t.Error("a node starts over beside one that was started again")
	}
	r.stop("c")
	if err := r.open["b"].Renew(t.Context()); err == nil {
		t.Error("a node starts over while another one is away")
	}
	if _, err := os.Stat(filepath.Join(r.dirs["b"], renewFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it would start over all the same: %v", err)
	}
}
