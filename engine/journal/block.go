package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math"
	"math/bits"
	"time"
)

// The parts of a block, in bytes. The picture is in doc.go.
const (
	formatVersion = 1
	headerBytes   = 48
	trailerBytes  = 4
	frameBytes    = headerBytes + trailerBytes
)

// kind is what the records of a block are.
type kind uint8

const (
	// kindRecords holds records of the caller.
	kindRecords kind = 0
	// kindClaim holds one empty record: the first of a new owner, with a new epoch.
	kindClaim kind = 1
)

// header is the decoded head of a block.
type header struct {
	kind      kind
	mode      Mode
	partition uint32
	epoch     uint64
	first     Index
	count     uint32
	body      uint32 // bytes of all records with their lengths
	time      int64  // log time, nanoseconds since 1970
	prev      uint64 // chain value of the block before, 0 for the first
}

// last returns the index of the last record.
func (h *header) last() Index { return h.first + uint64(h.count) - 1 }

// castagnoli returns the table of CRC32C. The library makes it once and shares it.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// seal completes a block in place: buf has headerBytes of room, the records, and capacity for the
// trailer. It returns the block and its chain value.
func seal(buf []byte, h *header) (block []byte, chain uint64) {
	h.body = uint32(len(buf) - headerBytes)
	putHeader(buf, h)
	sum := crc32.Checksum(buf, castagnoli())
	return binary.LittleEndian.AppendUint32(buf, sum), chainValue(h, sum)
}

func putHeader(b []byte, h *header) {
	b[0], b[1], b[2], b[3] = formatVersion, byte(h.kind), byte(h.mode), 0
	le := binary.LittleEndian
	le.PutUint32(b[4:], h.partition)
	le.PutUint64(b[8:], h.epoch)
	le.PutUint64(b[16:], h.first)
	le.PutUint32(b[24:], h.count)
	le.PutUint32(b[28:], h.body)
	le.PutUint64(b[32:], uint64(h.time))
	le.PutUint64(b[40:], h.prev)
}

func getHeader(b []byte) header {
	le := binary.LittleEndian
	return header{
		kind:      kind(b[1]),
		mode:      Mode(b[2]),
		partition: le.Uint32(b[4:]),
		epoch:     le.Uint64(b[8:]),
		first:     le.Uint64(b[16:]),
		count:     le.Uint32(b[24:]),
		body:      le.Uint32(b[28:]),
		time:      int64(le.Uint64(b[32:])),
		prev:      le.Uint64(b[40:]),
	}
}

// appendRecord adds one record to the body of a block.
func appendRecord(buf, rec []byte) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(rec))), rec...)
}

// recordBytes returns what a record of n bytes takes in a block.
func recordBytes(n int) int { return n + (bits.Len(uint(n)|1)+6)/7 }

// chainValue identifies a block and, through prev, all blocks before it. The CRC stands for the
// content. Time and epoch distinguish two blocks of the same index in two lives of a log. It
// detects mistakes and rot, not forgery.
func chainValue(h *header, sum uint32) uint64 {
	v := mix(h.prev + 0x9e3779b97f4a7c15)
	v = mix(v ^ h.first)
	v = mix(v ^ h.epoch)
	v = mix(v ^ uint64(h.time))
	return mix(v ^ uint64(sum)<<32 ^ uint64(h.body))
}

// mix is the finalizer of splitmix64: a bijection in which every bit of v changes every bit of the
// result.
func mix(v uint64) uint64 {
	v ^= v >> 30
	v *= 0xbf58476d1ce4e5b9
	v ^= v >> 27
	v *= 0x94d049bb133111eb
	return v ^ v>>31
}

// maxClockStep is how far the wall clock may get ahead of the monotonic one between two blocks. A
// jump must not end early what is kept for a time.
const maxClockStep = 60 * time.Second

// clock makes the log time of an owner. It never goes back, and follows the wall clock unless that
// jumps. The committer owns it, and Replay before.
type clock struct {
	last    int64         // ns since 1970
	elapsed time.Duration // reading of the monotonic clock at last
	begun   bool          // elapsed is of this owner; the time without an owner is not known
	ahead   bool          // the wall clock has jumped
}

// next returns the time of the next block.
func (c *clock) next(wall time.Time, elapsed time.Duration, log *slog.Logger) int64 {
	t := wall.UnixNano()
	if steady := c.last + int64(elapsed-c.elapsed); c.begun && t > steady+int64(maxClockStep) {
		if !c.ahead {
			log.Error("the clock jumped; the time of the journal goes on without it until the next start",
				"clock", wall, "journal", time.Unix(0, steady), "step", time.Duration(t-steady))
		}
		t, c.ahead = steady, true
	} else {
		c.ahead = false
	}
	c.last = max(c.last, t)
	c.elapsed, c.begun = elapsed, true
	return c.last
}

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
