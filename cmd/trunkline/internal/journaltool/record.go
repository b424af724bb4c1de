package journaltool

import (
	"fmt"

	"trunkline/codec/mpack"
	"trunkline/engine/idem"
	"trunkline/engine/kernel"
	"trunkline/engine/orchestration"
)

// record is a record of the journal, decoded: Kernel counts if OfKernel is set, Keys if OfKeys is,
// else Orchestration. Its slices point into what was parsed.
type record struct {
	OfKernel      bool
	OfKeys        bool // Keys counts
	Keys          idem.Change
	Kernel        kernel.Change
	Orchestration orchestration.Change
}

// parseRecord reads a record, which is all of rec. What it accepts is a change of a known version and kind whose parts are sound;
// whether it fits the state it meets is only known by a replay. An error wraps kernel.ErrBadChange or orchestration.ErrBadChange.
func parseRecord(rec []byte, r *record) error {
	r.OfKernel, r.OfKeys = false, false
	if len(rec) == 0 {
		return fmt.Errorf("%w: it is empty", kernel.ErrBadChange)
	}
	switch tag, body := rec[0], rec[1:]; tag {
	case kernel.Tag:
		c, rest, err := kernel.ParseChange(body)
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("%w: %s", kernel.ErrBadChange, mpack.TrailingBytes.Text())
		}
		if err == kernel.ErrShortChange {
			err = fmt.Errorf("%w: it is cut off", kernel.ErrBadChange)
		}
		r.OfKernel, r.Kernel = true, c
		return err
	case orchestration.Tag:
		return orchestration.ParseChange(body, &r.Orchestration)
	case idem.Tag:
		r.OfKeys = true
		return idem.ParseChange(body, &r.Keys)
	}
	return fmt.Errorf("%w: tag %q", kernel.ErrBadChange, rec[0])
}

// Kind names what the record does, with whose change it is in front: kernel.create.
func (r *record) Kind() string {
	switch {
	case r.OfKernel:
		return "kernel." + r.Kernel.Kind.String()
	case r.OfKeys:
		return "idempotency." + r.Keys.Kind.String()
	}
	return "orchestration." + r.Orchestration.Kind.String()
}

// machineTags are the tags of the machines of a server's store.
var machineTags = string([]byte{kernel.Tag, orchestration.Tag, idem.Tag})
