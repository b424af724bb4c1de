package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

var (
	errShort  = errors.New("cannot decode block: it is cut off")
	errSum    = errors.New("cannot decode block: its checksum is wrong")
	errLayout = errors.New("cannot decode block: its parts do not fit")
)

// block is a decoded block: a view of lent bytes.
type block struct {
	header
	records []byte // lengths and records, checked
	chain   uint64
}

// decodeBlock reads one block. It accepts exactly what seal makes. It allocates only an error.
func decodeBlock(b []byte) (block, error) {
	if len(b) < frameBytes {
		return block{}, errShort
	}
	if b[0] != formatVersion {
		return block{}, fmt.Errorf("cannot decode block: version %d, want %d", b[0], formatVersion)
	}
	h := getHeader(b)
	switch want := uint64(h.body) + frameBytes; {
	case want > MaxStoredBlock:
		return block{}, errLayout
	case uint64(len(b)) < want:
		return block{}, errShort
	case uint64(len(b)) > want:
		return block{}, errLayout
	}
	end := len(b) - trailerBytes
	sum := binary.LittleEndian.Uint32(b[end:])
	if sum != crc32.Checksum(b[:end], castagnoli()) {
		return block{}, errSum
	}
	d := block{header: h, records: b[headerBytes:end], chain: chainValue(&h, sum)}
	if b[3] != 0 || !h.sane() || !d.wellFormed() {
		return block{}, errLayout
	}
	return d, nil
}

// sane checks the fields that stand alone.
func (h *header) sane() bool {
	switch h.kind {
	case kindRecords:
	case kindClaim:
		if h.count != 1 || h.body != 1 {
			return false
		}
	default:
		return false
	}
	return h.mode < Memory && h.epoch > 0 && h.first > 0 && h.count > 0 && h.count <= h.body &&
		h.first <= math.MaxUint64-uint64(h.count)
}

// wellFormed checks that the body is exactly count records with lengths in the shortest form.
func (d *block) wellFormed() bool {
	rest, n := d.records, uint32(0)
	for len(rest) > 0 {
		var ok bool
		if _, rest, ok = nextRecord(rest); !ok {
			return false
		}
		n++
	}
	return n == d.count
}

// nextRecord splits the first record off a body.
func nextRecord(body []byte) (rec, rest []byte, ok bool) {
	n, w := binary.Uvarint(body)
	if w <= 0 || n > uint64(len(body)-w) || n > MaxRecordBytes || w > 1 && body[w-1] == 0 {
		return nil, nil, false
	}
	end := w + int(n)
	return body[w:end:end], body[end:], true
}

// each calls f with the records after index after. Records are lent as the block is.
func (d *block) each(after Index, f func(i Index, rec []byte) error) error {
	rest := d.records
	for i := d.first; len(rest) > 0; i++ {
		var rec []byte
		rec, rest, _ = nextRecord(rest)
		if i <= after {
			continue
		}
		if err := f(i, rec); err != nil {
			return err
		}
	}
	return nil
}

// LastOf returns the index of the last record of a block whose first record has index first. It
// returns first where the block does not decode.
func LastOf(first Index, block []byte) Index {
	if d, err := decodeBlock(block); err == nil && d.first == first {
		return d.last()
	}
	return first
}
