package kernel

import "hash/maphash"

// quotas keeps the quotas of a shard's rows, equal ones once: most processes share a handful of
// them, and a row with its own copy would take another half cache line. A unique quota costs some
// 80 bytes. It is written with the scheduling lock and the shard's mutex both held, so either one
// suffices to read.
type quotas struct {
	kept  []*[quotaChunk]keptQuota
	used  uint32 // places ever used
	index index  // by hash of the quota; text is not used
	free  uint32
	last  uint32 // kept by the latest row: mostly what the next one has
	seed  maphash.Seed
}

// quotaChunk quotas are allocated together: copying all is short, and few are unused.
const quotaChunk = 16

// keptQuota is one quota and how many rows have it. In a free place refs is the next free one.
type keptQuota struct {
	quota Quota
	refs  uint32
}

func (s *quotas) init() {
	s.free, s.last, s.seed = none, none, maphash.MakeSeed()
}

// at returns the quota of a reference that keep gave, valid until it is released.
func (s *quotas) at(ref uint32) *Quota { return &s.place(ref).quota }

func (s *quotas) place(ref uint32) *keptQuota { return &s.kept[ref/quotaChunk][ref%quotaChunk] }

// keep returns the reference of a quota equal to q, which counts one row more.
func (s *quotas) keep(q *Quota) uint32 {
	if s.last != none && *s.at(s.last) == *q {
		s.place(s.last).refs++
		return s.last
	}
	tag := s.tag(q)
	for e, pos := s.index.probe(tag, tag); e != nil; e, pos = s.index.probe(tag, pos) {
		if ref := e.slot - 1; *s.at(ref) == *q {
			s.place(ref).refs++
			s.last = ref
			return ref
		}
	}
	s.last = s.take()
	*s.place(s.last) = keptQuota{*q, 1}
	s.index.insert(tag, s.last, 0)
	return s.last
}

// release counts one row less.
func (s *quotas) release(ref uint32) {
	k := s.place(ref)
	if k.refs--; k.refs > 0 {
		return
	}
	s.index.remove(s.tag(&k.quota), ref)
	k.refs, s.free = s.free, ref
	if s.last == ref {
		s.last = none
	}
}

func (s *quotas) take() (ref uint32) {
	if ref = s.free; ref != none {
		s.free = s.place(ref).refs
		return ref
	}
	ref = s.used
	s.used++
	if int(ref/quotaChunk) == len(s.kept) {
		s.kept = append(s.kept, new([quotaChunk]keptQuota))
	}
	return ref
}

// tag hashes with a seed, because clients choose quotas and could make all of them collide.
func (s *quotas) tag(q *Quota) uint32 { return uint32(maphash.Comparable(s.seed, *q)) }
