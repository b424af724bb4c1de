package stream

import (
	"slices"

	"trunkline/engine/link"
)

// Drop closes a connection at once, whatever it has to send: one that is served or lingers here.
// found is false where none has the name. It does not wait.
func (h *Host) Drop(name string) (found bool) {
	id, ok := h.Number(name)
	if !ok {
		return false
	}
	named := func(c *conn) bool { return c.port.ID() == id }
	if open := h.list(nil); slices.ContainsFunc(open, named) {
		open[slices.IndexFunc(open, named)].abort(link.ReasonDropped)
		return true
	}
	last := h.listLingering()
	i := slices.IndexFunc(last, named)
	if i >= 0 {
		last[i].cut()
	}
	return i >= 0
}

// Number returns the number of the connection that has this name; ok is false where it is none of
// this Host.
func (h *Host) Number(name string) (id uint64, ok bool) { return h.direct.Number(name) }
