package embedded

import "encoding/binary"

// The first byte of a key, in the order of the file: see doc.go.
const (
	kindBlock = 'b'
	kindChunk = 'c'
	kindMeta  = 'm' // of earlier versions
)

// metaSeq is the number of a meta among the chunks of its snapshot: behind all of them.
const metaSeq = ^uint32(0)

const (
	prefixLen = 1 + 4
	numberLen = prefixLen + 8
	chunkLen  = numberLen + 4
)

// appendKey appends the key of number n (the first index of a block, or a snapshot).
func appendKey(dst []byte, kind byte, partition uint32, n uint64) []byte {
	dst = append(dst, kind)
	dst = binary.BigEndian.AppendUint32(dst, partition)
	return binary.BigEndian.AppendUint64(dst, n)
}

func appendChunkKey(dst []byte, partition uint32, g uint64, seq uint32) []byte {
	return binary.BigEndian.AppendUint32(appendKey(dst, kindChunk, partition, g), seq)
}

// keyNumber returns the number in a key that appendKey made, or that starts with such a key.
func keyNumber(key []byte) uint64 { return binary.BigEndian.Uint64(key[prefixLen:numberLen]) }

// keyRange returns the bounds of all keys of a kind: from the first to before the last.
func keyRange(kind byte, partition uint32) (lower, upper []byte) {
	lower = appendKey(nil, kind, partition, 0)
	return lower, after(appendKey(nil, kind, partition, ^uint64(0)))
}

// after returns the first key after key and all keys that begin with it: no key has 0xff 8 times.
func after(key []byte) []byte {
	return append(key, 0xff, 0xff, 0xff, 0xff, 0xff)
}
