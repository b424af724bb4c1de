package kernel

import (
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// TestRowIsTwoLines: a row is two cache lines, and what replies about a process show is on the
// first.
func TestRowIsTwoLines(t *testing.T) {
	var r row
	if size, chunk := unsafe.Sizeof(r), unsafe.Sizeof([rowChunk]row{}); size != 128 || chunk != 8192 {
		t.Errorf("a row has %d bytes, a chunk %d", size, chunk)
	}
	if end := unsafe.Offsetof(r.usage) + uintptr(Iterations)*unsafe.Sizeof(r.usage[0]); end > 64 {
		t.Errorf("the counters shown end at byte %d", end)
	}
}

// TestQuotasAgainstAModel: whatever comes and goes, a reference has its quota, equal ones share a
// place, and no place is lost.
func TestQuotasAgainstAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s quotas
		s.init()
		held := map[uint32]Quota{}
		var refs []uint32
		most := 0
		for range rapid.IntRange(1, 300).Draw(rt, "steps") {
			if len(refs) == 0 || rapid.IntRange(0, 2).Draw(rt, "keep") > 0 {
				q := Quota{MaxLLMCalls: rapid.Int32Range(0, 40).Draw(rt, "quota")}
				ref := s.keep(&q)
				if was, ok := held[ref]; ok && was != q {
					rt.Fatalf("%v is kept at %d, where %v is", q, ref, was)
				}
				held[ref] = q
				refs = append(refs, ref)
			} else {
				i := rapid.IntRange(0, len(refs)-1).Draw(rt, "i")
				ref := refs[i]
				refs[i] = refs[len(refs)-1]
				refs = refs[:len(refs)-1]
				s.release(ref)
				if !holds(refs, ref) {
					delete(held, ref)
				}
			}
			most = max(most, len(held))
			check(rt, &s, held, refs)
		}
		if int(s.used) != most {
			rt.Fatalf("%d places for at most %d quotas", s.used, most)
		}
	})
}

func holds(refs []uint32, ref uint32) bool {
	for _, r := range refs {
		if r == ref {
			return true
		}
	}
	return false
}

func check(rt *rapid.T, s *quotas, held map[uint32]Quota, refs []uint32) {
	seen := map[Quota]bool{}
	for ref, q := range held {
		if *s.at(ref) != q {
			rt.Fatalf("at %d is %v, want %v", ref, *s.at(ref), q)
		}
		if seen[q] {
			rt.Fatalf("%v is kept twice", q)
		}
		seen[q] = true
	}
	if s.index.n != len(held) {
		rt.Fatalf("%d quotas in the index, want %d", s.index.n, len(held))
	}
	count := map[uint32]uint32{}
	for _, ref := range refs {
		count[ref]++
	}
	for ref, n := range count {
		if s.place(ref).refs != n {
			rt.Fatalf("%d rows at %d, want %d", s.place(ref).refs, ref, n)
		}
	}
}
