package ipc

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"trunkline/codec/mpack"
	"trunkline/engine/idem"
	"trunkline/engine/kernel"
	"trunkline/engine/orchestration"
)

// Record is a record of the journal as the service writes it, decoded: Kernel counts if OfKernel is set, Keys if OfKeys is, else Orchestration. Its
// slices point into what was parsed.
type Record struct {
	OfKernel      bool
	OfKeys        bool // Keys counts
	Keys          idem.Change
	Kernel        kernel.Change
	Orchestration orchestration.Change
}

// ParseRecord reads a record, which is all of rec. What it accepts is a change of a known version and kind whose parts are sound;
// whether it fits the state it meets is only known by a replay. An error wraps kernel.ErrBadChange or orchestration.ErrBadChange.
func ParseRecord(rec []byte, r *Record) error {
	r.OfKernel, r.OfKeys = false, false
	if len(rec) == 0 {
		return fmt.Errorf("%w: it is empty", kernel.ErrBadChange)
	}
	switch tag, body := rec[0], rec[1:]; tag {
	case kernelRecord:
		c, rest, err := kernel.ParseChange(body)
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("%w: %s", kernel.ErrBadChange, mpack.TrailingBytes.Text())
		}
		if err == kernel.ErrShortChange {
			err = fmt.Errorf("%w: it is cut off", kernel.ErrBadChange)
		}
		r.OfKernel, r.Kernel = true, c
		return err
	case orchestrationRecord:
		return orchestration.ParseChange(body, &r.Orchestration)
	case keyRecord:
		r.OfKeys = true
		return idem.ParseChange(body, &r.Keys)
	}
	return fmt.Errorf("%w: tag %q", kernel.ErrBadChange, rec[0])
}

// Kind names what the record does, with whose change it is in front: kernel.create.
func (r *Record) Kind() string {
	switch {
	case r.OfKernel:
		return "kernel." + r.Kernel.Kind.String()
	case r.OfKeys:
		return "idempotency." + r.Keys.Kind.String()
	}
	return "orchestration." + r.Orchestration.Kind.String()
}

// CheckSnapshot reads a snapshot of the service to its end and checks that it is whole records with known tags and an end. It holds
// one record at a time. It returns how many there are. What is in a record is only known by loading it.
func CheckSnapshot(r io.Reader) (records uint64, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	for ended := false; ; records++ {
		n, err := binary.ReadUvarint(in)
		switch {
		case err == io.EOF && ended:
			return records, nil
		case err != nil:
			return records, fmt.Errorf("cannot read the snapshot: %w", noEOF(err))
		case n == 0 || n > maxSnapshotRecord || ended:
			return records, fmt.Errorf("%w: a snapshot record of %d bytes", kernel.ErrBadChange, n)
		}
		tag, err := in.ReadByte()
		if err == nil {
			_, err = io.CopyN(io.Discard, in, int64(n-1))
		}
		if err != nil {
			return records, fmt.Errorf("cannot read the snapshot: %w", noEOF(err))
		}
		if ended, err = checkTag(tag, n-1); err != nil {
			return records, err
		}
	}
}

func checkTag(tag byte, n uint64) (end bool, err error) {
	switch {
	case tag == kernelRecord, tag == orchestrationRecord, tag == keyRecord, tag == clockRecord && n == 8:
		return false, nil
	case tag == endRecord && n == 8:
		return true, nil
	}
	return false, fmt.Errorf("%w: a snapshot record with the tag %q", kernel.ErrBadChange, tag)
}
