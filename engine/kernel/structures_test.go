package kernel

import (
	"bytes"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestArenaKeepsBlocksApart(t *testing.T) {
	type block struct {
		ref  uint32
		want []byte
	}
	rapid.Check(t, func(t *rapid.T) {
		var a arena
		a.init()
		var blocks []block
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				n := rapid.OneOf(rapid.IntRange(1, 200), rapid.IntRange(1, maxBlock)).Draw(t, "n")
				want := bytes.Repeat([]byte{byte(rapid.IntRange(0, 255).Draw(t, "fill"))}, n)
				ref := a.alloc(n)
				copy(a.bytes(ref, n), want)
				blocks = append(blocks, block{ref, want})
			},
			"release": func(t *rapid.T) {
				if len(blocks) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(blocks)-1).Draw(t, "i")
				a.release(blocks[i].ref)
				blocks = slices.Delete(blocks, i, i+1)
			},
			"": func(t *rapid.T) {
				live := 0
				for _, b := range blocks {
					if !bytes.Equal(a.bytes(b.ref, len(b.want)), b.want) {
						t.Fatalf("block at %d changed", b.ref)
					}
				}
				for _, m := range a.meta {
					live += int(m.live)
				}
				if live != len(blocks) {
					t.Fatalf("%d live blocks, want %d", live, len(blocks))
				}
			},
		})
	})
}

func TestArenaGivesPagesBack(t *testing.T) {
	var a arena
	a.init()
	fill := func(size, n int) (refs []uint32) {
		for range n {
			refs = append(refs, a.alloc(size))
		}
		return refs
	}
	for _, size := range []int{40, 4096, 144} {
		refs := fill(size, 2000)
		for _, ref := range refs {
			a.release(ref)
		}
		held := 0
		for _, p := range a.pages {
			if p != nil {
				held++
			}
		}
		if held > sparePages {
			t.Errorf("after %d-byte blocks: %d pages held", size, held)
		}
	}
	// 2000 blocks of 4096 bytes need 1000 pages; the other sizes reuse their numbers.
	if len(a.pages) != 1000 {
		t.Errorf("%d page numbers in use", len(a.pages))
	}
}

func TestBlockSizesCoverEverything(t *testing.T) {
	for n := 1; n <= maxBlock; n++ {
		size := int(blockSizes[classOf[(n+granule-1)/granule]])
		if size < n || size > n+n/2+granule {
			t.Fatalf("%d bytes get a block of %d", n, size)
		}
	}
	for _, size := range blockSizes {
		if size%granule != 0 || pageSize%int(size) > pageSize/16 && size < 4096 {
			t.Errorf("size %d wastes %d bytes of a page", size, pageSize%int(size))
		}
	}
}

func TestIndexAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x index
		model := map[uint32]uint32{} // slot -> tag
		find := func(tag, slot uint32) bool {
			for e, pos := x.probe(tag, tag); e != nil; e, pos = x.probe(tag, pos) {
				if e.slot == slot+1 {
					return e.text == ^slot
				}
			}
			return false
		}
		// Few distinct tags make long runs that wrap around the end.
		tags := rapid.OneOf(rapid.Uint32Range(0, 20), rapid.Just(^uint32(0)), rapid.Uint32())
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				slot := rapid.Uint32Range(0, 200).Draw(t, "slot")
				if _, taken := model[slot]; taken {
					t.Skip()
				}
				model[slot] = tags.Draw(t, "tag")
				x.insert(model[slot], slot, ^slot)
			},
			"remove": func(t *rapid.T) {
				slot := rapid.Uint32Range(0, 200).Draw(t, "slot")
				tag, there := model[slot]
				if !there {
					t.Skip()
				}
				x.remove(tag, slot)
				delete(model, slot)
				if find(tag, slot) {
					t.Fatalf("slot %d still found", slot)
				}
			},
			"": func(t *rapid.T) {
				for slot, tag := range model {
					if !find(tag, slot) {
						t.Fatalf("slot %d lost", slot)
					}
				}
				if x.n != len(model) || 4*x.n > 3*len(x.entries) {
					t.Fatalf("n %d of %d, want %d", x.n, len(x.entries), len(model))
				}
			},
		})
	})
}

func TestOrderAgainstSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o order
		var model []uint64
		next := uint64(1)
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				for range rapid.IntRange(1, 600).Draw(t, "n") {
					o.append(next, uint32(next*3))
					model = append(model, next)
					next += rapid.Uint64Range(1, 3).Draw(t, "gap")
				}
			},
			"remove": func(t *rapid.T) {
				for range rapid.IntRange(1, 300).Draw(t, "n") {
					if len(model) > 0 {
						i := rapid.IntRange(0, len(model)-1).Draw(t, "i")
						o.remove(model[i])
						model = slices.Delete(model, i, i+1)
					}
				}
			},
			"removeMissing": func(t *rapid.T) { o.remove(next + 5); o.remove(0) },
			"": func(t *rapid.T) {
				cursor := rapid.Uint64Range(0, next+1).Draw(t, "cursor")
				seqs, refs := make([]uint64, 300), make([]uint32, 300)
				n := o.after(cursor, seqs, refs)
				i, _ := slices.BinarySearch(model, cursor+1)
				want := model[i:min(i+300, len(model))]
				if !slices.Equal(seqs[:n], want) {
					t.Fatalf("after %d: got %v, want %v", cursor, seqs[:n], want)
				}
				for i := range n {
					if refs[i] != uint32(seqs[i]*3) {
						t.Fatalf("ref of %d is %d", seqs[i], refs[i])
					}
				}
				for i := 1; i < len(o.chunks); i++ {
					if o.chunks[i-1].n+o.chunks[i].n <= orderChunkLen && i < len(o.chunks)-1 {
						t.Fatalf("sparse neighbours %d and %d", o.chunks[i-1].n, o.chunks[i].n)
					}
				}
			},
		})
	})
}

func TestOrderEndOfSequence(t *testing.T) {
	var o order
	o.append(7, 1)
	if n := o.after(^uint64(0), make([]uint64, 2), make([]uint32, 2)); n != 0 {
		t.Errorf("after the last cursor: %d", n)
	}
}

// TestBytesPerProcess holds the table to 400 bytes per live process with four 36-byte identifiers,
// everything included.
func TestBytesPerProcess(t *testing.T) {
	const n = 200000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	k := New(Config{Defaults: unlimited()})
	fillTable(k, n)
	runtime.GC()
	runtime.ReadMemStats(&after)
	per := (after.HeapAlloc - before.HeapAlloc) / n
	t.Logf("%d bytes per process", per)
	if per > 400 {
		t.Errorf("%d bytes per process, want at most 400", per)
	}
	runtime.KeepAlive(k)
}
