package kernel

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// list returns up to limit pids and the cursor behind the last.
func (r *rig) list(f ListFilter, limit int) (pids string, cursor uint64) {
	var all []string
	r.k.List(&f, func(p *PCB) bool {
		all = append(all, string(p.PID))
		cursor = p.Created
		return len(all) < limit
	})
	return strings.Join(all, " "), cursor
}

func TestListFilters(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	for _, pid := range []string{"a/x", "b/y", "c/x", "d/y"} {
		r.mk(pid)
	}
	r.to("c", Running, OK)
	r.to("d", Running, OK)
	f := func(filter ListFilter, want string) {
		t.Helper()
		got, _ := r.list(filter, 100)
		r.want("list", got, want)
	}
	f(ListFilter{}, "a b c d")
	f(ListFilter{HasState: true, State: Ready}, "a b")
	f(ListFilter{UserID: []byte("x")}, "a c")
	f(ListFilter{UserID: []byte("x"), HasState: true, State: Running}, "c")
	f(ListFilter{UserID: []byte{}}, "")
	f(ListFilter{HasState: true, State: Zombie}, "")
	f(ListFilter{Cursor: 2}, "c d")
	f(ListFilter{Cursor: 4}, "")
	f(ListFilter{Cursor: ^uint64(0)}, "")
}

func TestListPagesThroughChange(t *testing.T) {
	r := newRig(t, Config{MaxProcesses: 2000, Defaults: unlimited()})
	for i := range 1000 {
		r.mk(fmt.Sprintf("p%03d", i))
	}
	pids, cursor := r.list(ListFilter{}, 3)
	r.want("page", pids, "p000 p001 p002")
	for i := range 500 { // also the one the cursor stands on
		r.to(fmt.Sprintf("p%03d", i), Terminated, OK)
	}
	r.after(1)
	r.k.Sweep(r.now)
	r.mk("p001")
	pids, cursor = r.list(ListFilter{Cursor: cursor}, 2)
	r.want("page", pids, "p500 p501")
	pids, _ = r.list(ListFilter{Cursor: cursor}, 10000)
	r.want("rest", pids[:9]+"…"+pids[len(pids)-9:], "p502 p503…p999 p001")
}

// TestListVisitsWithoutLocks: the visitor may call the kernel, and what it removes is not shown.
func TestListVisitsWithoutLocks(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	for i := range 2*listBatch + 10 {
		r.mk(fmt.Sprint("p", i))
	}
	seen := 0
	r.k.List(&ListFilter{}, func(p *PCB) bool {
		if seen++; seen == 1 {
			for i := 1; i < 2*listBatch+10; i += 2 {
				r.to(fmt.Sprint("p", i), Terminated, OK)
			}
			r.after(1)
			r.k.Sweep(r.now)
		} else if p.PID[len(p.PID)-1]&1 == 1 {
			t.Fatalf("%s is gone", p.PID)
		}
		return true
	})
	if seen != listBatch+5 {
		t.Errorf("saw %d", seen)
	}
}

// TestCreationOfPartitions: the processes of several kernels have one order, that of the time of
// day, and no two have one creation sequence, also when a clock goes back.
func TestCreationOfPartitions(t *testing.T) {
	var rigs []*rig
	for i := range uint64(3) {
		rigs = append(rigs, newRig(t, Config{Partition: i, Partitions: 3, Defaults: unlimited()}))
	}
	last := uint64(0)
	for n := range 9 {
		r := rigs[n*2%3]
		r.now = at(time.Duration(n) * time.Millisecond)
		pid := fmt.Sprint("p", n)
		r.create(pid, Normal)
		var seq uint64
		r.k.List(&ListFilter{}, func(p *PCB) bool {
			seq = p.Created
			return true
		})
		if seq <= last || seq%3 != uint64(n*2%3) || seq>>sequenceBits != uint64(r.now.Wall) {
			t.Errorf("%s of partition %d has creation sequence %d after %d", pid, n*2%3, seq, last)
		}
		last = seq
	}
	r := rigs[0]
	before := r.k.created
	r.now.Wall -= 1000
	r.create("late", Normal)
	if r.k.created != before+3 {
		t.Errorf("with a clock behind: %d after %d", r.k.created, before)
	}
	if k := r.replayed(Config{Partition: 0, Partitions: 3}); k.created != r.k.created {
		t.Errorf("%d after a replay, want %d", k.created, r.k.created)
	}
}

// TestListOfPartitionsThatCountedApart: kernels that numbered their processes by themselves, from 1
// on, share the sequences since a restart. Pages of any size show each process of all of them once:
// those from before in the order of their kernel, then the others by the time of day.
func TestListOfPartitionsThatCountedApart(t *testing.T) {
	const partitions = 3
	var kernels []*rig
	want, n := "", 0
	for p := range uint64(partitions) {
		r := newRig(t, Config{Defaults: unlimited()})
		for i := range 4 + p {
			r.create(fmt.Sprint("old", p, i), Normal)
		}
		r.k = r.replayed(Config{Partition: p, Partitions: partitions, Defaults: unlimited()})
		kernels = append(kernels, r)
	}
	for i := range 4 + partitions {
		for p := range partitions {
			if i < 4+p {
				want, n = want+fmt.Sprint("old", p, i, " "), n+1
			}
		}
	}
	for i := range 7 {
		r := kernels[i*2%partitions]
		r.now = at(time.Duration(i) * time.Millisecond)
		r.create(fmt.Sprint("new", i), Normal)
		want, n = want+fmt.Sprint("new", i, " "), n+1
	}
	for limit := 1; limit <= n; limit++ {
		got, cursor := "", uint64(0)
		for range n {
			rows := make(map[uint64]string)
			for _, r := range kernels {
				left := limit
				r.k.List(&ListFilter{Cursor: cursor}, func(p *PCB) bool {
					if pid, taken := rows[p.Created]; taken {
						t.Fatalf("%s and %s have one cursor %d", pid, p.PID, p.Created)
					}
					rows[p.Created] = string(p.PID)
					left--
					return left > 0
				})
			}
			for _, created := range slices.Sorted(maps.Keys(rows))[:min(limit, len(rows))] {
				got, cursor = got+rows[created]+" ", created
			}
		}
		if got != want {
			t.Fatalf("in pages of %d: %s, want %s", limit, got, want)
		}
	}
}
