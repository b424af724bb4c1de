package kernel

// digest is FNV-1a over 64-bit words and byte strings, finished by a mixer so that digests of parts
// may be added up.
type digest uint64

func newDigest() digest { return 14695981039346656037 }

func (d *digest) word(vs ...uint64) {
	for _, v := range vs {
		for shift := 0; shift < 64; shift += 8 {
			*d = (*d ^ digest(v>>shift&0xff)) * 1099511628211
		}
	}
}

func (d *digest) text(b []byte) {
	d.word(uint64(len(b)))
	for _, c := range b {
		*d = (*d ^ digest(c)) * 1099511628211
	}
}

func (d digest) sum() uint64 {
	h := uint64(d)
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

func (d *digest) quota(q *Quota) {
	for _, v := range q {
		d.word(uint64(v))
	}
}

// stateDigest condenses the state that changes describe: rows, queue order, leases, completions,
// usage, rate logs, defaults and sequences. It does not depend on shards, seeds, slots or on the
// recency of rate-limit logs. It is meaningful while nothing else runs; for tests and for comparing
// a replay with its origin.
func (k *Kernel) stateDigest() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	d := newDigest()
	d.word(k.created, k.readied, uint64(k.total), uint64(k.sched.depth))
	for _, n := range k.byState {
		d.word(uint64(n))
	}
	d.quota(k.defaults.Load())
	var rows uint64
	for i := range k.shards {
		rows += k.digestShard(&k.shards[i])
	}
	d.word(rows, k.rates.digest())
	k.digestOrder(&d)
	k.digestLeases(&d)
	k.digestCompleted(&d)
	for i := range k.sched.ready {
		k.digestReady(&d, &k.sched.ready[i])
	}
	return d.sum()
}

func (k *Kernel) digestShard(sh *shard) (sum uint64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for slot := range sh.used {
		r := sh.row(slot)
		if r.created == 0 {
			continue
		}
		d := newDigest()
		d.word(r.created, uint64(r.clock), uint64(r.state), uint64(r.priority))
		for _, n := range r.lens {
			d.word(uint64(n))
		}
		d.text(sh.texts.bytes(r.text, r.textLen()))
		d.text(sh.reasonOf(r))
		for _, v := range r.usage {
			d.word(uint64(v))
		}
		d.quota(sh.quotas.at(r.quota))
		n := k.sched.nodes.at(r.node)
		// A returned entry and a queued one differ only in where they are kept.
		where := n.where
		if where == returned {
			where = queued
		}
		d.word(uint64(where))
		if where == queued || where == leased || where == handedOut {
			d.word(n.ready)
		}
		if where == leased {
			d.word(uint64(n.stamp))
		}
		sum += d.sum()
	}
	return sum
}

func (k *Kernel) digestOrder(d *digest) {
	for _, c := range k.order.chunks {
		for i := range c.n {
			_, r := k.rowOf(c.ref[i])
			d.word(c.seq[i], r.created)
		}
	}
}

// digestLeases covers the order of the ends. Leases that end at the same instant have no order that
// anyone could see: all of them go back to places of their own.
func (k *Kernel) digestLeases(d *digest) {
	for i := k.sched.leases.head; i != none; i = k.sched.nodes.at(i).next {
		d.word(uint64(k.sched.nodes.at(i).stamp))
	}
	d.word(0)
}

func (k *Kernel) digestCompleted(d *digest) {
	for i := k.sched.completed.head; i != none; i = k.sched.nodes.at(i).next {
		n := k.sched.nodes.at(i)
		_, r := k.rowOf(n.ref)
		d.word(r.created, uint64(n.stamp))
	}
	d.word(0)
}

// digestReady covers one priority's FIFO; the heap's order is that of the READY sequences, which
// the rows cover.
func (k *Kernel) digestReady(d *digest, q *readyQueue) {
	for i := q.fifo.head; i != none; i = k.sched.nodes.at(i).next {
		n := k.sched.nodes.at(i)
		_, r := k.rowOf(n.ref)
		d.word(r.created, n.ready)
	}
	d.word(uint64(len(q.back)))
}

func (l *limiter) digest() (sum uint64) {
	for i := range l.shards {
		sum += l.shards[i].digest()
	}
	return sum
}

func (s *rateShard) digest() (sum uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.used {
		g := s.log(i)
		if !g.live {
			continue
		}
		d := newDigest()
		d.text(s.user(g))
		for n := range g.n {
			d.word(uint64(g.at(n)))
		}
		sum += d.sum()
	}
	return sum
}
