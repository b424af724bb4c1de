package orchestration

import (
	"trunkline/engine/link"
	"trunkline/engine/store"
)

// Tag is the first byte of the engine's records in a store.
const Tag byte = 'o'

// Machine returns the engine as a machine of a store; now reads the clock.
func (o *Engine) Machine(now func() link.Instant) store.Machine {
	m := &machine{engine: o, now: now}
	return store.Machine{Tag: Tag, State: m, Ordered: m}
}

// machine implements store.State and store.Ordered.
type machine struct {
	engine *Engine
	now    func() link.Instant
	call   Call // of the recovery
	latest int64
}

func (m *machine) WriteSnapshot(write func(rec []byte) error) error {
	return m.engine.WriteSnapshot(&Call{Now: m.now()}, write)
}

func (m *machine) Digest() uint64 { return m.engine.Digest(&Call{Now: m.now()}) }

func (m *machine) Recovering(on bool) { m.engine.Recovering(on) }

func (m *machine) Load(rec []byte) error { return m.engine.LoadRecord(&m.call, rec) }

func (m *machine) Apply(rec []byte, index uint64) error {
	var c Change
	if err := ParseChange(rec, &c); err != nil {
		return err
	}
	m.latest = max(m.latest, c.At.Mono)
	return m.engine.Apply(&m.call, &c, index)
}

func (m *machine) Latest() int64 { return m.latest }
