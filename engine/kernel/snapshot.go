package kernel

// snapshotBatch bounds the slots that are copied per hold of the locks.
const snapshotBatch = 128

// snapshotBytes bounds the copied rate logs per hold, less the last one of up to maxStamps stamps.
const snapshotBytes = 64 << 10

// WriteSnapshot calls write with the records of a snapshot (see the package comment) in order. A
// record is at most maxSnapshotRecordLen bytes and lent for the call. No lock is held during the
// call: write may be slow, and others may use the kernel. A batch of rows at a time is copied under
// the scheduling lock and a shard's.
//
// The snapshot holds the effects of every record that the journal had when WriteSnapshot was
// called, and of later ones that met rows which were not copied yet. loadSnapshotRecord restores
// it. The order of processes that completed at the same instant is that of the records: it is kept
// only if Config.Journal returns indexes. WriteSnapshot stops at the first error of write and
// returns it.
func (k *Kernel) WriteSnapshot(write func(rec []byte) error) error {
	w := snapshotWriter{write: write}
	k.copyGlobals(&w)
	if err := w.flush(); err != nil {
		return err
	}
	for i := range k.shards {
		for from, more := uint32(0), true; more; from += snapshotBatch {
			more = k.copyRows(&w, &k.shards[i], from)
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	for i := range k.rates.shards {
		for from, more := uint32(0), true; more; {
			from, more = k.rates.shards[i].copyLogs(&w, from)
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	w.add(appendSnapshotEnd(w.buf, w.processes, w.logs))
	return w.flush()
}

// snapshotWriter collects the records of a batch under the locks, and writes them without.
type snapshotWriter struct {
	write           func(rec []byte) error
	buf             []byte
	ends            []int // of the records in buf
	processes, logs uint64
}

// add takes note of a record that was appended to buf.
func (w *snapshotWriter) add(buf []byte) {
	w.buf = buf
	w.ends = append(w.ends, len(buf))
}

func (w *snapshotWriter) flush() error {
	start := 0
	for _, end := range w.ends {
		if err := w.write(w.buf[start:end:end]); err != nil {
			return err
		}
		start = end
	}
	w.buf, w.ends = w.buf[:0], w.ends[:0]
	return nil
}

func (k *Kernel) copyGlobals(w *snapshotWriter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w.add(appendSnapshotBegin(w.buf, &snapshotGlobals{created: k.created, readied: k.readied, now: k.now,
		defaultsRecord: k.defaultsRecord, defaults: *k.defaults.Load()}))
}

// copyRows copies snapshotBatch slots of sh from the given one on; more: further slots follow.
func (k *Kernel) copyRows(w *snapshotWriter, sh *shard, from uint32) (more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	end := min(from+snapshotBatch, sh.used)
	for slot := from; slot < end; slot++ {
		if r := sh.row(slot); r.created != 0 {
			w.add(appendSnapshotRow(w.buf, sh, r, k.sched.nodes.at(r.node), r.recorded))
			w.processes++
		}
	}
	return end < sh.used
}

// copyLogs copies logs from the given slot on and returns the next slot, if there are more.
func (s *rateShard) copyLogs(w *snapshotWriter, from uint32) (next uint32, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := min(from+snapshotBatch, s.used)
	for next = from; next < end && len(w.buf) < snapshotBytes; next++ {
		if g := s.log(next); g.live {
			w.add(appendSnapshotLog(w.buf, s.user(g), g, s.recorded.at(next)))
			w.logs++
		}
	}
	return next, next < s.used
}
