package threads

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"trunkline/engine/journal"
)

// A set of the archive holds blocks, one behind the other. A block is records in the order of the
// journal, kept as a run is, and cut into chunks:
//
//	 0      1      2        6        14      18
//	+------+------+--------+--------+-------+----------------+
//	| vers | more | number | last   | crc   | of the block   |
//	|      |      | u32    | u64    | u32   |                |
//	+------+------+--------+--------+-------+----------------+
//
// Integers are big endian. more is 1 where the next chunk goes on with the block. number counts the
// chunks of the set, last is the index of the last record of the block, crc is CRC32C of all else.
// A record is its index and its length as uvarints, its kind, and the rest of it.
const (
	archiveVersion = 1
	chunkHead      = 18
	chunkSum       = 14
	// blockBytes is how long a block grows. A record that is longer has its own.
	blockBytes = 224 << 10
	// maxKeptBlock bounds what is put together of chunks.
	maxKeptBlock = journal.MaxRecordBytes + 2*blockBytes
)

var errBadArchive = errors.New("cannot parse the archive of rows")

// blockWriter makes the chunks of a set.
type blockWriter struct {
	put  func(n uint32, chunk []byte) error
	next uint32 // number of a chunk
	last journal.Index

	raw, kept, work, chunk []byte
}

// add appends a record.
func (w *blockWriter) add(index journal.Index, rec []byte) error {
	w.raw = binary.AppendUvarint(binary.AppendUvarint(w.raw, index), uint64(len(rec)))
	w.raw, w.last = append(w.raw, rec...), index
	if len(w.raw) < blockBytes {
		return nil
	}
	return w.flush()
}

// flush ends a block.
func (w *blockWriter) flush() error {
	if len(w.raw) == 0 {
		return nil
	}
	w.kept = appendRun(w.kept[:0], w.raw, &w.work)
	w.raw = w.raw[:0]
	for rest, more := w.kept, true; more; w.next++ {
		n := min(len(rest), journal.MaxChunkBytes-chunkHead)
		more = n < len(rest)
		c := append(w.chunk[:0], archiveVersion, 0)
		if more {
			c[1] = 1
		}
		c = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(c, w.next), w.last)
		c = append(append(c, 0, 0, 0, 0), rest[:n]...)
		binary.BigEndian.PutUint32(c[chunkSum:], sumOfChunk(c))
		if err := w.put(w.next, c); err != nil {
			return err
		}
		w.chunk, rest = c, rest[n:]
	}
	return nil
}

// sumOfChunk returns the checksum of a chunk without the sum that it has.
func sumOfChunk(c []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(c[:chunkSum], table), table, c[chunkHead:])
}

// blockReader takes the chunks of a set.
type blockReader struct {
	after journal.Index // records up to it are not shown
	// f is called with the records; rec begins with its kind, and is lent.
	f func(index journal.Index, rec []byte) error

	next uint32
	more bool // kept is the begin of a block that ends at last
	last journal.Index

	kept, work []byte
}

// take takes the next chunk.
func (r *blockReader) take(c []byte) error {
	if len(c) < chunkHead || c[0] != archiveVersion || c[1] > 1 || binary.BigEndian.Uint32(c[2:]) != r.next ||
		binary.BigEndian.Uint32(c[chunkSum:]) != sumOfChunk(c) {
		return errBadArchive
	}
	last := binary.BigEndian.Uint64(c[6:])
	if r.more && last != r.last || !r.more && last <= r.last || len(r.kept)+len(c) > maxKeptBlock {
		return errBadArchive
	}
	r.next, r.more, r.last = r.next+1, c[1] == 1, last
	if last <= r.after {
		return nil
	}
	r.kept = append(r.kept, c[chunkHead:]...)
	if r.more {
		return nil
	}
	run, err := openRun(r.kept, &r.work)
	r.kept = r.kept[:0]
	if err != nil {
		return fmt.Errorf("%w: %w", errBadArchive, err)
	}
	return r.records(run)
}

// records calls f with those of a block.
func (r *blockReader) records(run []byte) error {
	for before := journal.Index(0); len(run) > 0; {
		index, n := binary.Uvarint(run)
		length, m := binary.Uvarint(run[max(n, 0):])
		if n <= 0 || m <= 0 || index <= before || index > r.last || length == 0 || length > uint64(len(run)-n-m) {
			return errBadArchive
		}
		rec := run[n+m:][:length]
		run, before = run[n+m:][length:], index
		if index > r.after {
			if err := r.f(index, rec); err != nil {
				return err
			}
		}
	}
	return nil
}

// end returns an error where the set ends inside of a block.
func (r *blockReader) end() error {
	if r.more {
		return errBadArchive
	}
	return nil
}
