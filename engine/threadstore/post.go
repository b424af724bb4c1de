package threadstore

// Post is a message that is to be appended. Its slices are lent.
type Post struct {
	Kind Kind
	// Body is the text between the quotes of a JSON string that was checked.
	Body []byte
	// Metadata is a JSON object without spaces; empty: none.
	Metadata []byte
	// InReplyTo is the identifier of a message of the same thread; empty: none.
	InReplyTo []byte
	// Key, if any, is the idempotency key, and Digest that of the payload (threads §4.3).
	Key    []byte
	Digest [digestSize]byte
	At     int64 // when it is to be posted, if that is later, in milliseconds since 1970
}

// Posted is a message that was appended, or deferred.
type Posted struct {
	id       rawID
	Seq      uint64
	Status   Status // of the thread
	Deferred string // identifier of a message that is to be posted at Receipt.At; empty: it was posted
	Receipt
}

// AppendID appends the identifier of the message.
func (p *Posted) AppendID(dst []byte) []byte { return appendID(dst, messagePrefix, &p.id) }

// keptRow bounds the buffers that are kept.
const keptRow = 64 << 10

// Post appends a message to a thread (threads §4.3). In steady state it allocates only segments.
func (e *Engine) Post(a *Actor, id []byte, p *Post, now int64) (out Posted, _ Refusal) {
	t, code := e.open(a, id, a.Rank != Coordinator)
	if code != OK {
		return out, Refusal{Code: code}
	}
	defer t.mu.Unlock()
	var reply *rawID
	if len(p.InReplyTo) > 0 {
		id, ok := parseID(p.InReplyTo, messagePrefix)
		if !ok {
			return out, Refusal{Code: NoMessage}
		}
		if found, err := e.holds(t, &id); err != nil {
			return out, Refusal{Code: Failed, Err: err}
		} else if !found {
			return out, Refusal{Code: NoMessage}
		}
		reply = &id
	}
	var hash keyHash
	if len(p.Key) > 0 {
		hash = hashKey(t.made.Number, a.Agent, p.Key)
		if known, same, err := e.known(t, a, p, &hash, now, &out); err != nil {
			return out, Refusal{Code: Failed, Err: err}
		} else if known && !same {
			return out, Refusal{Code: KeyReused, Index: out.Index}
		} else if known {
			return out, Refusal{}
		}
	}
	switch wait := int64(0); {
	case t.status == Closed:
		return out, Refusal{Code: ThreadClosed, Status: t.status, Index: t.index}
	case t.latest >= maxSeq:
		return out, Refusal{Code: SeqExhausted}
	case e.refuses():
		return out, Refusal{Code: NotStored}
	default:
		if wait = e.quotas.take(e.rates.Load(), t, a, now); wait > 0 {
			return out, Refusal{Code: RateLimited, N: wait}
		}
	}
	if p.At > now {
		return e.deferPost(t, a, p, now)
	}
	e.appendTo(t, a, p, reply, &hash, now, &out)
	e.heard(a.Workspace, a.Agent, now)
	return out, Refusal{}
}

// appendTo appends a message. Caller holds t.mu.
func (e *Engine) appendTo(t *thread, a *Actor, p *Post, reply *rawID, hash *keyHash, now int64, out *Posted) {
	created := max(now, t.lastAt)
	seq, id := t.latest+1, e.ids.next(&t.lastID, created)
	buf, _ := e.rows.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	row := appendRow((*buf)[:0], a, p, reply, &id, created)
	if len(p.Key) > 0 {
		// The key is there before the record is: a snapshot that leaves out the record has the key.
		e.keys.Add(hash, seq, created)
	}
	rec := &t.scratch.message
	rec.Number, rec.Seq, rec.Row = t.made.Number, seq, row
	t.keep(e.message(t, rec), seq, &id, created)
	t.unread.count(a.Agent, seq)
	e.changed(t, t.index, seq)
	e.directory.touch(t)
	e.deliver(t, p.Kind, p.Metadata, "", now)
	rec.Row = nil
	if *buf = row; cap(row) <= keptRow {
		e.rows.Put(buf)
	}
	e.posted.Add(1)
	out.id, out.Seq, out.Status, out.Receipt = id, seq, t.status, Receipt{Index: t.index, At: created}
}

// message records a message and keeps its row. Caller holds t.mu.
func (e *Engine) message(t *thread, rec *messagePosted) ref {
	e.hot.mu.Lock()
	defer e.hot.mu.Unlock()
	index := e.store.Append(Tag, func(dst []byte) []byte {
		dst, _ = rec.MarshalMsg(append(dst, opMessage)) // it does not fail
		return dst
	})
	return e.hot.add(rec.Row, entry{thread: t, seq: rec.Seq, index: index})
}

// keep notes a message at the end of t. Caller holds t.mu.
func (t *thread) keep(r ref, seq uint64, id *rawID, created int64) {
	t.hot = append(t.hot, r)
	t.index = max(t.index, r.index)
	t.latest, t.lastID, t.lastAt, t.updated = seq, *id, created, max(t.updated, created)
}

// known looks for a message with the key of p. If there is one, it fills out; same reports whether
// its payload was that of p. Caller holds t.mu.
func (e *Engine) known(t *thread, a *Actor, p *Post, hash *keyHash, now int64, out *Posted) (known, same bool, err error) {
	if e.timers.keyed.Load() > 0 && e.knownDeferred(t, a, p, hash, out, &same) {
		return true, same, nil
	}
	var seq uint64
	err = e.keys.Find(hash, func(number uint64) bool {
		if number <= t.latest && number > t.gone { // a start may have lost messages whose keys are in the index
			seq = number
		}
		return seq == 0
	})
	if err != nil || seq == 0 {
		return false, false, err
	}
	row, err := e.row(t, seq, nil)
	if err != nil || row == nil {
		return false, false, err
	}
	m, err := parseRow(row)
	if err != nil || string(m.sender) != a.Agent || string(m.key) != string(p.Key) || !e.valid(m.created, now) {
		return false, false, err
	}
	out.id, out.Seq, out.Status, out.Receipt = m.id, seq, t.status, Receipt{Index: t.index, At: m.created, Replay: true}
	return true, string(m.digest) == string(p.Digest[:]), nil
}

// row returns the row of a message, nil if there is none. It appends to buf what is not in memory.
// Caller holds t.mu.
func (e *Engine) row(t *thread, seq uint64, buf []byte) (row []byte, err error) {
	if seq <= t.gone || seq > t.latest {
		return nil, nil
	}
	if back := t.latest - seq; back < uint64(len(t.hot)) {
		return t.hot[uint64(len(t.hot))-1-back].row(), nil
	}
	row = buf
	err = e.scanStored(t.made.Number, seq, seq, func(_ uint64, stored []byte) bool {
		row = append(row, stored...)
		return false
	})
	return row, err
}

// idOf returns the identifier of a message; of 0 that is zero. Caller holds t.mu.
func (e *Engine) idOf(t *thread, seq uint64) (id rawID, err error) {
	if seq == t.latest {
		return t.lastID, nil
	}
	row, err := e.row(t, seq, nil)
	if err != nil || row == nil {
		return id, err
	}
	m, err := parseRow(row)
	return m.id, err
}

// holds reports whether a message with this identifier is in t: the identifiers of a thread are in
// the order of its messages. Caller holds t.mu.
func (e *Engine) holds(t *thread, want *rawID) (bool, error) {
	low, high := t.gone+1, t.latest+1
	var buf []byte
	for low < high {
		middle := low + (high-low)/2
		row, err := e.row(t, middle, buf[:0])
		if err != nil {
			return false, err
		}
		m, err := parseRow(row)
		if err != nil {
			return false, err
		}
		switch order := compareIDs(&m.id, want); {
		case order == 0:
			return true, nil
		case order < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return false, nil
}
