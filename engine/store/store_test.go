package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memstore"
)

// notes is the smallest state machine: a list of texts, whose records are the texts.
type notes struct {
	mu         sync.Mutex
	store      *Store
	tag        byte
	list       []string
	last       journal.Index
	recovering []bool
}

func (n *notes) machine() Machine { return Machine{Tag: n.tag, State: n, Ordered: n} }

func (n *notes) add(text string) {
	defer n.store.Leave(n.store.Enter())
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, text)
	n.last = n.store.Append(n.tag, func(dst []byte) []byte { return append(dst, text...) })
}

func (n *notes) WriteSnapshot(write func(rec []byte) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, text := range n.list {
		if err := write(fmt.Appendf(nil, "%d %s", n.last, text)); err != nil {
			return err
		}
	}
	return nil
}

func (n *notes) Digest() (sum uint64) {
	for i, text := range n.list {
		for j := range len(text) {
			sum = sum*31 + uint64(text[j]) + uint64(i)
		}
	}
	return sum
}

func (n *notes) Recovering(on bool) { n.recovering = append(n.recovering, on) }

func (n *notes) Load(rec []byte) error {
	last, text, ok := strings.Cut(string(rec), " ")
	if _, err := fmt.Sscan(last, &n.last); err != nil || !ok {
		return errors.New("cannot parse a note")
	}
	n.list = append(n.list, text)
	return nil
}

func (n *notes) Apply(rec []byte, index journal.Index) error {
	if index > n.last {
		n.list, n.last = append(n.list, string(rec)), index
	}
	return nil
}

func (n *notes) Latest() int64 { return int64(n.last) }

// open recovers a store of one machine per tag from disk.
func open(t *testing.T, disk *memstore.Disk, tags string) (s *Store, machines []*notes) {
	t.Helper()
	cfg := Config{Now: func() int64 { return 1 }}
	for _, tag := range []byte(tags) {
		n := &notes{tag: tag}
		machines, cfg.Machines = append(machines, n), append(cfg.Machines, n.machine())
	}
	s = New(cfg)
	for _, n := range machines {
		n.store = s
	}
	kept, err := disk.Open()
	if err != nil {
		t.Fatal(err)
	}
	log, err := journal.Open(kept, journal.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	if err := s.Recover(log, RecoverOptions{}); err != nil {
		t.Fatal(err)
	}
	return s, machines
}

// TestMachinesJoin: machines of which none is parallel recover from a snapshot and the log behind
// it, and two stores of a process share nothing.
func TestMachinesJoin(t *testing.T) {
	disks := [2]*memstore.Disk{memstore.New(memstore.Options{}), memstore.New(memstore.Options{})}
	var digests [2]uint64
	for i, disk := range disks {
		s, m := open(t, disk, "ab")
		for n := range 20 {
			m[n%2].add(fmt.Sprintf("%d of store %d", n, i))
			if n == 9 {
				if err := s.Snapshot(); err != nil {
					t.Fatal(err)
				}
			}
		}
		m[0].add(strings.Repeat("x", MaxLaneRecord-1))
		m[1].add(strings.Repeat("y", MaxLaneRecord)) // with its tag too long for a lane
		digests[i] = s.Digest()
		if err := s.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Log().Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, disk := range disks {
		s, m := open(t, disk, "ab")
		if got := s.Digest(); got != digests[i] || digests[0] == digests[1] {
			t.Errorf("store %d: digest %x, want %x", i, got, digests[i])
		}
		if s.snapshot == 0 || s.tail == 0 {
			t.Errorf("store %d: %d bytes of a snapshot and %d of the log", i, s.snapshot, s.tail)
		}
		if got := fmt.Sprint(m[0].recovering, m[1].recovering); got != "[true false] [true false]" {
			t.Errorf("Recovering: %s", got)
		}
		if s.Base() != int64(m[1].last) {
			t.Errorf("base %d, want %d", s.Base(), m[1].last)
		}
	}
}

// TestMachinesThatCannotJoin: a store does not recover with machines with equal tags or without one
// recovery each.
func TestMachinesThatCannotJoin(t *testing.T) {
	n := &notes{}
	f := func(name, want string, list ...Machine) {
		t.Helper()
		kept, err := memstore.New(memstore.Options{}).Open()
		if err != nil {
			t.Fatal(err)
		}
		log, err := journal.Open(kept, journal.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		if err := New(Config{Machines: list}).Recover(log, RecoverOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	f("one tag twice", `'a' is in use`, Machine{Tag: 'a', State: n, Ordered: n}, Machine{Tag: 'a', State: n, Ordered: n})
	f("the clock's tag", `'t' is in use`, Machine{Tag: clockTag, State: n, Ordered: n})
	f("the tag of beats", `'h' is in use`, Machine{Tag: beatTag, State: n, Ordered: n})
	f("the end's tag", `'e' is in use`, Machine{Tag: endTag, State: n, Ordered: n})
	f("no recovery", `tag 'a'`, Machine{Tag: 'a', State: n})
	f("both recoveries", `tag 'a'`, Machine{Tag: 'a', State: n, Ordered: n, Parallel: parallel{}})
	f("two that are parallel", `tag 'b'`, Machine{Tag: 'a', State: n, Parallel: parallel{}}, Machine{Tag: 'b', State: n, Parallel: parallel{}})
}

// parallel is a machine that is never recovered.
type parallel struct{ Parallel }
