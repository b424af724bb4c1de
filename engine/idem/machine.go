package idem

import "trunkline/engine/store"

// Tag is the first byte of the table's records in a store.
const Tag byte = 'i'

// Machine returns the table as a machine of a store.
func (t *Table) Machine() store.Machine {
	return store.Machine{Tag: Tag, State: t, Ordered: &recovered{table: t}}
}

// recovered implements store.Ordered.
type recovered struct {
	table  *Table
	latest int64
}

func (m *recovered) Recovering(on bool) {
	if !on {
		m.table.Recovered()
	}
}

func (m *recovered) Load(rec []byte) error { return m.table.LoadRecord(rec) }

func (m *recovered) Apply(rec []byte, index uint64) error {
	var c Change
	if err := ParseChange(rec, &c); err != nil {
		return err
	}
	m.latest = max(m.latest, c.At)
	return m.table.Apply(&c, index)
}

func (m *recovered) Latest() int64 { return m.latest }
