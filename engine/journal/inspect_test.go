package journal

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// inspected shows in letters what an inspection saw: the good blocks as first-last, a damage as
// !index-until.
func inspected(t *testing.T, s Store, from Index) string {
	t.Helper()
	var saw []string
	err := NewInspector(s, 0, Always).Blocks(from, func(b *BlockView) error {
		kind := ""
		if b.Claim {
			kind = "c"
		}
		saw = append(saw, fmt.Sprintf("%s%d-%d", kind, b.First, b.Last))
		return b.Records(0, func(i Index, rec []byte) error {
			if i < b.First || i > b.Last || string(rec) != "x" {
				t.Errorf("record %d is %q", i, rec)
			}
			return nil
		})
	}, func(d Damage) error {
		saw = append(saw, fmt.Sprintf("!%d-%d", d.Index, d.Until))
		if d.Where == "" || d.Err == nil {
			t.Errorf("a damage without words: %+v", d)
		}
		return nil
	})
	if err != nil {
		saw = append(saw, err.Error())
	}
	return strings.Join(saw, " ")
}

func TestInspectorGoesOnBehindDamage(t *testing.T) {
	none := func(int, *header) {}
	flip := func(b [][]byte, i int) [][]byte { b[i][headerBytes] ^= 1; return b }
	f := func(name string, blocks [][]byte, err error, from Index, want string) {
		t.Helper()
		if got := inspected(t, &listed{blocks: blocks, err: err}, from); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	f("empty", nil, nil, 0, "")
	f("whole", chained(4, none), nil, 0, "c1-1 2-2 3-3 4-4")
	f("from the middle", chained(4, none), nil, 3, "3-3 4-4")
	f("from behind the end", chained(4, none), nil, 9, "4-4")
	f("begins later", chained(4, none)[2:], nil, 0, "3-3 4-4")
	f("changed", flip(chained(5, none), 2), nil, 0, "c1-1 2-2 !3-4 4-4 5-5")
	f("two changed", flip(flip(chained(5, none), 2), 3), nil, 0, "c1-1 2-2 !3-5 5-5")
	f("two places", flip(flip(chained(6, none), 1), 3), nil, 0, "c1-1 !2-3 3-3 !4-5 5-5 6-6")
	f("last changed", flip(chained(3, none), 2), nil, 0, "c1-1 2-2 !3-0")
	f("first changed", flip(chained(3, none), 0), nil, 0, "!1-2 2-2 3-3")
	missing := chained(5, none)
	f("missing", append(missing[:2:2], missing[3:]...), nil, 0, "c1-1 2-2 !3-4 4-4 5-5")
	other := chained(4, func(i int, h *header) { h.time += 7 })
	f("of another life", append(chained(2, none), other[2:]...), nil, 0, "c1-1 2-2 !3-3 3-3 4-4")
	f("another epoch", chained(4, func(i int, h *header) { h.epoch = uint64(1 + i/3) }), nil, 0, "c1-1 2-2 3-3 !4-4 4-4")
	f("another mode", chained(3, func(i int, h *header) { h.mode = Mode(i / 2) }), nil, 0, "c1-1 2-2 !3-0")
	f("a store that finds damage", chained(3, none), &DamageError{Where: "file", Index: 2, Err: io.EOF}, 0, "c1-1 2-2 3-3 !4-0")
	f("a store that fails", chained(3, none), io.ErrClosedPipe, 0, "c1-1 2-2 3-3 cannot read journal from index 4: "+io.ErrClosedPipe.Error())
}

func TestInspectorStopsWhenTold(t *testing.T) {
	stop := errors.New("enough")
	blocks := chained(5, func(int, *header) {})
	blocks[3][headerBytes] ^= 1
	in := NewInspector(&listed{blocks: blocks}, 0, Always)
	n := 0
	err := in.Blocks(0, func(*BlockView) error {
		if n++; n == 2 {
			return stop
		}
		return nil
	}, func(Damage) error { return nil })
	if err != stop || n != 2 {
		t.Errorf("%v after %d blocks", err, n)
	}
	if err := in.Blocks(0, func(*BlockView) error { return nil }, func(Damage) error { return stop }); err != stop {
		t.Errorf("a damage: %v", err)
	}
	err = in.Blocks(2, func(b *BlockView) error { return b.Records(0, func(Index, []byte) error { return stop }) }, nil)
	if err != stop {
		t.Errorf("a record: %v", err)
	}
}

func TestLastIndexOfAnInspector(t *testing.T) {
	f := func(blocks [][]byte, want Index) {
		t.Helper()
		if got, err := NewInspector(&listed{blocks: blocks}, 0, Always).LastIndex(); got != want || err != nil {
			t.Errorf("%d, %v, want %d", got, err, want)
		}
	}
	f(nil, 0)
	blocks := chained(4, func(int, *header) {})
	f(blocks, 4)
	blocks[3][headerBytes] ^= 1
	f(blocks, 4)
}

func TestInspectorReadsSnapshots(t *testing.T) {
	m := meta{number: 3, epoch: 1, index: 2, through: 2, size: 4, chunks: 1}
	chunk := func(text string) []byte {
		sum := chunkSum(3, 0, []byte(text))
		return append([]byte(text), byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
	}
	f := func(name string, g Snapshot, chunks [][]byte, good bool) {
		t.Helper()
		in := NewInspector(&listed{gens: []Snapshot{g}, chunks: chunks}, 0, Always)
		list, err := in.Snapshots()
		if err != nil || len(list) != 1 || list[0].Number != g.Number {
			t.Fatalf("%s: %+v, %v", name, list, err)
		}
		var got []byte
		err = in.ReadSnapshot(&list[0], func(r io.Reader) error {
			got, _ = io.ReadAll(io.LimitReader(r, 2)) // the rest is verified all the same
			return nil
		})
		var damage *DamageError
		if good != (err == nil) || !good && !errors.As(err, &damage) || good && string(got) != "te" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	whole := Snapshot{Number: 3, Meta: m.encode()}
	f("whole", whole, [][]byte{chunk("text")}, true)
	f("changed", whole, [][]byte{append(chunk("text")[:7], 0xff)}, false)
	f("a chunk missing", whole, nil, false)
	f("a chunk too many", whole, [][]byte{chunk("text"), chunk("text")}, false)
	f("meta cut", Snapshot{Number: 3, Meta: m.encode()[:60]}, nil, false)
	f("another number", Snapshot{Number: 4, Meta: m.encode()}, nil, false)
	m.mode = Interval
	f("another mode", Snapshot{Number: 3, Meta: m.encode()}, nil, false)
	m.mode, m.partition = Always, 9
	f("another partition", Snapshot{Number: 3, Meta: m.encode()}, nil, false)
}
