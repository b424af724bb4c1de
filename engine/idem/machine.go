package idem

import "trunkline/engine/store"

// First bytes of records in a store: of the table of tool calls, and of that of kernel IPC
// requests.
const (
	Tag        byte = 'i'
	RequestTag byte = 'r'
)

// Machine returns the table as a machine of a store whose records begin with tag.
func (t *Table) Machine(tag byte) store.Machine {
	return store.Machine{Tag: tag, State: t, Ordered: &recovered{table: t}}
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
