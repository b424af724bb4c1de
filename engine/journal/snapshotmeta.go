package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The parts of a snapshot, in bytes. The pictures are in doc.go.
const (
	metaBytes = 64
	sumBytes  = 4
	// maxPayload is what one chunk holds of a snapshot.
	maxPayload = MaxChunkBytes - sumBytes
)

// meta is the decoded meta of a snapshot.
type meta struct {
	mode      Mode
	partition uint32
	number    uint64
	epoch     uint64
	index     Index // replay starts after it
	through   Index // the snapshot may hold effects up to it, so the log must reach it
	time      int64
	size      uint64 // bytes of all payloads
	chunks    uint32
}

func (m *meta) encode() []byte {
	b := make([]byte, metaBytes)
	le := binary.LittleEndian
	b[0], b[1] = formatVersion, byte(m.mode)
	le.PutUint32(b[4:], m.partition)
	le.PutUint64(b[8:], m.number)
	le.PutUint64(b[16:], m.epoch)
	le.PutUint64(b[24:], m.index)
	le.PutUint64(b[32:], m.through)
	le.PutUint64(b[40:], uint64(m.time))
	le.PutUint64(b[48:], m.size)
	le.PutUint32(b[56:], m.chunks)
	le.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli()))
	return b
}

// errMetaVersion is that another version of the program wrote a meta: no start passes over that.
var errMetaVersion = errors.New("cannot decode meta of snapshot")

func decodeMeta(b []byte) (meta, error) {
	le := binary.LittleEndian
	switch {
	case len(b) != metaBytes:
		return meta{}, fmt.Errorf("cannot decode meta of snapshot: %d bytes, want %d", len(b), metaBytes)
	case le.Uint32(b[60:]) != crc32.Checksum(b[:60], castagnoli()):
		return meta{}, errors.New("cannot decode meta of snapshot: its checksum is wrong")
	case b[0] != formatVersion:
		return meta{}, fmt.Errorf("%w: version %d, want %d", errMetaVersion, b[0], formatVersion)
	}
	m := meta{
		mode:      Mode(b[1]),
		partition: le.Uint32(b[4:]),
		number:    le.Uint64(b[8:]),
		epoch:     le.Uint64(b[16:]),
		index:     le.Uint64(b[24:]),
		through:   le.Uint64(b[32:]),
		time:      int64(le.Uint64(b[40:])),
		size:      le.Uint64(b[48:]),
		chunks:    le.Uint32(b[56:]),
	}
	if b[2] != 0 || b[3] != 0 || m.mode >= Memory || m.index > m.through || m.size > uint64(m.chunks)*maxPayload {
		return meta{}, errors.New("cannot decode meta of snapshot: its parts do not fit")
	}
	return m, nil
}

// unusable returns the damage for which a start ignores a snapshot before it reads a chunk; nil for
// none.
func (g *Snapshot) unusable() error {
	if g.Err != nil {
		return g.Err
	}
	if _, err := decodeMeta(g.Meta); err != nil && !errors.Is(err, errMetaVersion) {
		return &DamageError{Where: snapshotPlace(g.Number), Err: err}
	}
	return nil
}

// chunkSum is the CRC32C of a payload together with its place, so that another chunk, of this
// snapshot or another one, does not pass for it.
func chunkSum(number uint64, chunk uint32, payload []byte) uint32 {
	var at [12]byte
	binary.LittleEndian.PutUint64(at[:], number)
	binary.LittleEndian.PutUint32(at[8:], chunk)
	return crc32.Update(crc32.Checksum(at[:], castagnoli()), castagnoli(), payload)
}

// verifier checks the chunks of one snapshot against its meta, one after the other.
type verifier struct {
	meta
	seen uint32
	size uint64
}

// payload returns what a chunk holds, a part of it.
func (v *verifier) payload(chunk []byte) ([]byte, error) {
	end := len(chunk) - sumBytes
	if end < 1 || len(chunk) > MaxChunkBytes || v.seen == v.chunks {
		return nil, v.damage(fmt.Errorf("chunk %d of %d bytes does not belong to it", v.seen, len(chunk)))
	}
	p := chunk[:end:end]
	if binary.LittleEndian.Uint32(chunk[end:]) != chunkSum(v.number, v.seen, p) {
		return nil, v.damage(fmt.Errorf("the checksum of chunk %d is wrong", v.seen))
	}
	v.seen++
	v.size += uint64(end)
	return p, nil
}

// end checks that nothing is missing.
func (v *verifier) end() error {
	if v.seen != v.chunks || v.size != v.meta.size {
		return v.damage(fmt.Errorf("%d chunks of %d bytes, want %d of %d", v.seen, v.size, v.chunks, v.meta.size))
	}
	return nil
}

func (v *verifier) damage(err error) error {
	return &DamageError{Where: snapshotPlace(v.number), Index: v.index, Err: err}
}

func snapshotPlace(number uint64) string { return fmt.Sprintf("snapshot generation %d", number) }
