package journal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"log/slog"
	"strings"
	"testing"
)

// listed is a store that reads what a test made by hand.
type listed struct {
	instant
	blocks [][]byte
	gens   []Snapshot
	chunks [][]byte
	err    error // after the last block, chunk or snapshot
}

func (s *listed) Blocks(from Index, f func(Index, []byte) error) error {
	for n, b := range s.blocks {
		h := getHeader(b)
		if n+1 < len(s.blocks) && getHeader(s.blocks[n+1]).first <= from {
			continue
		}
		if err := f(h.first, b); err != nil {
			return err
		}
	}
	return s.err
}

func (s *listed) ListSnapshots() ([]Snapshot, error) { return s.gens, nil }

func (s *listed) ReadSnapshot(_ uint64, f func([]byte) error) error {
	for _, c := range s.chunks {
		if err := f(c); err != nil {
			return err
		}
	}
	return s.err
}

// chained makes blocks of one record each that follow from each other, after change had each of its
// headers.
func chained(n int, change func(i int, h *header)) (out [][]byte) {
	var chain uint64
	for i := range n {
		h := header{epoch: 1, first: Index(i) + 1, count: 1, time: int64(i) + 1, prev: chain}
		rec := []byte("x")
		if i == 0 {
			h.kind, rec = kindClaim, nil
		}
		change(i, &h)
		var b []byte
		b, chain = seal(appendRecord(make([]byte, headerBytes), rec), &h)
		out = append(out, b)
	}
	return out
}

// replayAll opens and replays.
func replayAll(s Store) error {
	l, err := Open(s, Config{})
	if err != nil {
		return err
	}
	defer l.Close()
	return l.Replay(0, func(Index, []byte) error { return nil })
}

// TestFollows: each block is sound and has a right checksum, but one does not follow from the one
// before.
func TestFollows(t *testing.T) {
	f := func(index Index, why string, change func(h *header)) {
		t.Helper()
		err := replayAll(&listed{blocks: chained(5, func(i int, h *header) {
			if i == int(index)-1 {
				change(h)
			}
		})})
		var damage *DamageError
		if !errors.As(err, &damage) || damage.Index != index || damage.Unwrap() == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q at %d: %v", why, index, err)
		}
	}
	f(1, "follow", func(h *header) { h.prev = 5 })
	f(3, "follow", func(h *header) { h.prev++ })
	f(3, "epoch", func(h *header) { h.epoch = 2 })
	f(1, "decode", func(h *header) { h.kind = kindRecords; h.count = 2 })
	f(1, "epoch", func(h *header) { h.kind = kindRecords })
	f(3, "time", func(h *header) { h.time = 1 })
	f(2, "missing", func(h *header) { h.first = 3 })
	f(3, "next", func(h *header) { h.first = 2 })
	if err := replayAll(&listed{blocks: chained(5, func(int, *header) {})}); err != nil {
		t.Errorf("a sound log: %v", err)
	}
	claim := &listed{blocks: chained(2, func(i int, h *header) { h.epoch = 3 - uint64(i) })}
	claim.blocks[1] = chainedClaim(claim.blocks[0], 3)
	if err := replayAll(claim); err == nil || !strings.Contains(err.Error(), "epoch") {
		t.Errorf("a claim of the same epoch: %v", err)
	}
	claim.blocks[1] = chainedClaim(claim.blocks[0], 4)
	if err := replayAll(claim); err != nil {
		t.Errorf("a claim of a higher epoch: %v", err)
	}
}

// chainedClaim makes a claim after a block.
func chainedClaim(after []byte, epoch uint64) []byte {
	d, _ := decodeBlock(after)
	h := header{kind: kindClaim, epoch: epoch, first: d.last() + 1, count: 1, time: d.time, prev: d.chain}
	b, _ := seal(appendRecord(make([]byte, headerBytes), nil), &h)
	return b
}

// TestStoreErrors: what the store states about its own damage is handed on as it is, anything else
// with its place.
func TestStoreErrors(t *testing.T) {
	own := errors.New("cannot read sector")
	if err := replayAll(&listed{err: own}); !errors.Is(err, own) || !strings.Contains(err.Error(), "the end of the journal") {
		t.Errorf("an error of the store: %v", err)
	}
	damage := &DamageError{Where: "file 7", Index: 3, Err: own}
	if err := replayAll(&listed{err: damage}); err != error(damage) {
		t.Errorf("damage that the store found: %v", err)
	}
	if err := replayAll(&listed{blocks: chained(2, func(_ int, h *header) { h.partition = 1 })}); err == nil {
		t.Errorf("another partition was accepted")
	}
	mismatch := (*ErrModeMismatch)(nil)
	if err := replayAll(&listed{blocks: chained(2, func(_ int, h *header) { h.mode = Interval })}); !errors.As(err, &mismatch) || !strings.Contains(err.Error(), "mode always") {
		t.Errorf("another mode: %v", err)
	}
}

// tearing is a listed store that may tear.
type tearing struct{ listed }

func (*tearing) MayTear() bool { return true }

// TestBeforeTorn: what is before a torn block must reach up to it.
func TestBeforeTorn(t *testing.T) {
	f := func(index Index, remove int) {
		t.Helper()
		b := chained(5, func(int, *header) {})
		b[4] = b[4][:headerBytes]
		err := replayAll(&tearing{listed{blocks: append(b[:remove:remove], b[remove+1:]...)}})
		var damage *DamageError
		if index == 0 && err != nil || index != 0 && (!errors.As(err, &damage) || damage.Index != index) {
			t.Errorf("without block %d: %v, want damage at %d", remove, err, index)
		}
	}
	f(0, 4)
	f(4, 3)
	f(3, 2)
	f(1, 0)
	alone := chained(1, func(int, *header) {})
	alone[0] = alone[0][:headerBytes]
	if err := replayAll(&tearing{listed{blocks: alone}}); err != nil {
		t.Errorf("the first block of all is torn: %v", err)
	}
}

// load reads one hand-made snapshot.
func load(m meta, enc []byte, number uint64, chunks [][]byte, storeErr error) (string, error) {
	s := &listed{blocks: chained(3, func(int, *header) {}), gens: []Snapshot{{Number: number, Meta: enc}}, chunks: chunks}
	var told strings.Builder // why it was given up
	l, err := Open(s, Config{Logger: slog.New(slog.NewTextHandler(&told, nil))})
	if err != nil {
		return "", err
	}
	defer l.Close()
	if told.Len() > 0 {
		return "", errors.New(told.String())
	}
	s.err = storeErr
	var got string
	_, err = l.LoadSnapshot(func(r io.Reader, i Index, _ uint64) error {
		b, err := io.ReadAll(r)
		if got = string(b); i != m.index {
			return errors.New("wrong index")
		}
		return err
	})
	return got, err
}

func TestSnapshotIsStrict(t *testing.T) {
	chunk := func(number uint64, seq uint32, payload string) []byte {
		sum := chunkSum(number, seq, []byte(payload))
		return append([]byte(payload), byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
	}
	f := func(why string, change func(m *meta), alter func(b []byte) []byte, chunks ...[]byte) {
		t.Helper()
		m := meta{number: 7, epoch: 1, index: 2, through: 3, size: 4, chunks: 2}
		change(&m)
		got, err := load(m, alter(m.encode()), 7, chunks, nil)
		if (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) || err == nil && got != "abcd" {
			t.Errorf("want %q: %q, %v", why, got, err)
		}
	}
	same, keep := func(*meta) {}, func(b []byte) []byte { return b }
	a, b := chunk(7, 0, "ab"), chunk(7, 1, "cd")
	f("", same, keep, a, b)
	f("want 2 of 4", same, keep, a)
	f("does not belong", same, keep, a, b, chunk(7, 2, "ef"))
	f("want 2 of 4", same, keep, a, chunk(7, 1, "cde"))
	f("chunk 0 is wrong", same, keep, b, a)
	f("chunk 0 is wrong", same, keep, chunk(8, 0, "ab"), b)
	f("does not belong", same, keep, chunk(7, 0, ""), b)
	f("63 bytes", same, func(b []byte) []byte { return b[:63] }, a, b)
	f("version 9", same, func(b []byte) []byte {
		b[0] = 9
		binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli()))
		return b
	}, a, b)
	f("checksum", same, func(b []byte) []byte { b[20] ^= 1; return b }, a, b)
	f("do not fit", func(m *meta) { m.index = 4 }, keep, a, b)
	f("do not fit", func(m *meta) { m.mode = Memory }, keep, a, b)
	f("do not fit", func(m *meta) { m.size = 2*maxPayload + 1 }, keep, a, b)
	f("generation 8", func(m *meta) { m.number = 8 }, keep, a, b)
	f("partition 0", func(m *meta) { m.partition = 8 }, keep, a, b)
	f("mode always", func(m *meta) { m.mode = Interval }, keep, a, b)
	f("up to 4", func(m *meta) { m.through = 4 }, keep, a, b)
	own := errors.New("cannot read sector")
	m := meta{number: 7, epoch: 1, index: 2, through: 3, size: 4, chunks: 2}
	if _, err := load(m, m.encode(), 7, [][]byte{a, b}, own); !errors.Is(err, own) {
		t.Errorf("an error of the store: %v", err)
	}
}
