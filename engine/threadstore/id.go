package threadstore

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"sync"
	"time"

	"trunkline/engine/threadstore/keyindex"
)

// Prefixes of identifiers (threads §6).
const (
	threadPrefix  = "th_"
	messagePrefix = "msg_"
	requestPrefix = "req_"
)

// Sizes of identifiers: raw, and as text without the prefix.
const (
	idBytes = 16
	idText  = 26
)

// rawID is a ULID: 48 bits of milliseconds since 1970, then 80 random bits.
type rawID [idBytes]byte

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// appendID appends an identifier as text.
func appendID(dst []byte, prefix string, id *rawID) []byte {
	hi, lo := binary.BigEndian.Uint64(id[:]), binary.BigEndian.Uint64(id[8:])
	var text [idText]byte
	for i := idText - 1; i >= 0; i-- {
		text[i] = crockford[lo&31]
		lo, hi = lo>>5|hi<<59, hi>>5
	}
	return append(append(dst, prefix...), text[:]...)
}

// parseID reads what appendID wrote.
func parseID(text []byte, prefix string) (id rawID, ok bool) {
	if len(text) != len(prefix)+idText || string(text[:len(prefix)]) != prefix || text[len(prefix)] > '7' {
		return id, false
	}
	var hi, lo uint64
	for _, c := range text[len(prefix):] {
		v := crockfordValue(c)
		if v < 0 {
			return id, false
		}
		hi, lo = hi<<5|lo>>59, lo<<5|uint64(v)
	}
	binary.BigEndian.PutUint64(id[:], hi)
	binary.BigEndian.PutUint64(id[8:], lo)
	return id, true
}

func crockfordValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'A' && c <= 'H':
		return int(c-'A') + 10
	case c == 'J' || c == 'K':
		return int(c-'J') + 18
	case c == 'M' || c == 'N':
		return int(c-'M') + 20
	case c >= 'P' && c <= 'T':
		return int(c-'P') + 22
	case c >= 'V' && c <= 'Z':
		return int(c-'V') + 27
	}
	return -1
}

// ids makes identifiers.
type ids struct {
	mu     sync.Mutex
	random *bufio.Reader
	fresh  [10]byte
}

// randomAhead is how many random bytes are read at a time.
const randomAhead = 4 << 10

func newIDs() *ids { return &ids{random: bufio.NewReaderSize(rand.Reader, randomAhead)} }

// next returns an identifier for a time in milliseconds since 1970. One after prev in the same
// millisecond is larger than prev, so that the identifiers of a thread are in the order of its
// messages.
func (g *ids) next(prev *rawID, ms int64) (id rawID) {
	binary.BigEndian.PutUint64(id[:], uint64(ms)<<16)
	again := prev != nil && [6]byte(prev[:6]) == [6]byte(id[:6])
	need := len(g.fresh)
	if again {
		need = 4
	}
	g.mu.Lock()
	for n := 0; n < need; {
		m, _ := g.random.Read(g.fresh[n:need]) // crypto/rand does not fail
		n += m
	}
	fresh := g.fresh
	g.mu.Unlock()
	if !again {
		copy(id[6:], fresh[:])
		return id
	}
	hi, lo := binary.BigEndian.Uint64(prev[:]), binary.BigEndian.Uint64(prev[8:])
	step := uint64(binary.BigEndian.Uint32(fresh[:])) + 1
	if lo += step; lo < step {
		hi++
	}
	binary.BigEndian.PutUint64(id[:], hi)
	binary.BigEndian.PutUint64(id[8:], lo)
	return id
}

// keyHash names an idempotency key.
type keyHash = keyindex.Hash

// hashKey names a key of a sender in a thread.
func hashKey[A string | []byte](thread uint64, agent A, key []byte) keyHash {
	var buf [8 + 2 + maxName + maxKey]byte
	b := binary.BigEndian.AppendUint64(buf[:0], thread)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(agent))), agent...)
	sum := sha256.Sum256(append(b, key...))
	return keyHash(sum[:])
}

// AppendRequestID appends a new identifier for a request that the client did not name.
func (e *Engine) AppendRequestID(dst []byte) []byte {
	id := e.ids.next(nil, time.Now().UnixMilli())
	return appendID(dst, requestPrefix, &id)
}

func appendUint(dst []byte, n uint64) []byte { return strconv.AppendUint(dst, n, 10) }

// AppendTime appends a time in milliseconds since 1970 as threads §3.2 shows times. It is in every
// answer, and takes a sixth of the time of a format.
func AppendTime(dst []byte, ms int64) []byte {
	t := time.UnixMilli(ms).UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	text := [...]byte{'0', '0', '0', '0', '-', '0', '0', '-', '0', '0', 'T', '0', '0', ':', '0', '0', ':', '0', '0', '.', '0', '0', '0', 'Z'}
	twoDigits(&text, 0, year/100)
	twoDigits(&text, 2, year)
	twoDigits(&text, 5, int(month))
	twoDigits(&text, 8, day)
	twoDigits(&text, 11, hour)
	twoDigits(&text, 14, minute)
	twoDigits(&text, 17, second)
	milli := t.Nanosecond() / 1e6
	text[20] += byte(milli / 100)
	twoDigits(&text, 21, milli)
	return append(dst, text[:]...)
}

// twoDigits adds the last two digits of a number to those at i.
func twoDigits(text *[24]byte, i, n int) {
	text[i] += byte(n / 10 % 10)
	text[i+1] += byte(n % 10)
}

// hashCreation names the idempotency key of a create_thread.
func hashCreation(workspace, agent string, key []byte) keyHash {
	b := append(binary.BigEndian.AppendUint16(nil, uint16(len(workspace))), workspace...)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(agent))), agent...)
	sum := sha256.Sum256(append(b, key...))
	return keyHash(sum[:])
}
