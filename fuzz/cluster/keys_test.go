package cluster

import (
	"fmt"
	"slices"
	"sync"

	"trunkline/engine/idem"
)

// keys are the keys of idempotency of a world.
type keys struct {
	w    *world
	mu   sync.Mutex
	list []*keyed
}

// keyed is what calls with one key have done.
type keyed struct {
	w     *world
	name  string
	key   idem.Key
	input [32]byte

	mu      sync.Mutex
	starts  []string // processes that have started it
	effects int
	first   string // answer
}

// recent is among how many of the last keys a call is repeated.
const recent = 6

// choose returns a new key, or a recent one.
func (h *keys) choose(d *dice) *keyed {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.list); n > 0 && d.hits(500) {
		return h.list[n-1-d.below(min(n, recent))]
	}
	k := &keyed{w: h.w, name: fmt.Sprint("k", len(h.list))}
	k.key = idem.KeyOf([]byte("client"), []byte("tool"), []byte(k.name))
	h.list = append(h.list, k)
	return k
}

func (h *keys) all() []*keyed {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// start notes that a process has begun an execution.
func (k *keyed) start(l *life) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.starts = append(k.starts, l.name)
}

// effect is what the tool does outside of the cluster. It returns its result.
func (k *keyed) effect(l *life) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.effects++; k.effects > 1 {
		k.w.fail("%s executes key %s for the %d. time", l.name, k.name, k.effects)
	}
	return fmt.Sprint(k.name, " executed ", k.effects)
}

// lost notes that a process does not know how far an execution came: one before it has begun it.
func (k *keyed) lost(l *life) {
	k.w.count(&k.w.stats.unknown)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.ContainsFunc(k.starts, func(by string) bool { return by != l.name }) {
		k.w.fail("%s does not know the outcome of key %s, which %v have begun", l.name, k.name, k.starts)
	}
}

// answer notes what a client got.
func (k *keyed) answer(result string) {
	k.w.count(&k.w.stats.keys)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.first == "":
		k.first = result
	case k.first != result:
		k.w.fail("key %s gives %q, and gave %q before", k.name, result, k.first)
	}
	if result != unknownOutcome && k.effects == 0 {
		k.w.fail("key %s gives %q and was not executed", k.name, result)
	}
}
