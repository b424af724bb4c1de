package threads

import "encoding/binary"

// Retention of rows.
const (
	// expireStep is how many rows one step looks at.
	expireStep = 2000
	// keepJobs is how long a final job is kept, in milliseconds (threads §6).
	keepJobs = 30 * 24 * 3600_000
)

// expirer walks over the rows that end some day, a step at a time, and begins anew at the end.
type expirer struct{ next []byte }

// expire removes idempotency keys and the rows of jobs whose time is over, among the next ones of
// the walk.
func (e *Engine) expire(now int64) error {
	e.storing.Lock()
	defer e.storing.Unlock()
	var gone [][]byte
	if e.cfg.KeyWindow > 0 {
		if err := e.keys.Expire(now - e.cfg.KeyWindow); err != nil {
			return err
		}
	}
	for _, kind := range []byte{rowJob, rowJobKey} {
		w := e.expirers[kind]
		from, n := w.next, 0
		if from == nil {
			from = []byte{kind}
		}
		w.next = nil
		err := e.disk.Scan(from, []byte{kind + 1}, false, func(key, value []byte) bool {
			if n++; n > expireStep {
				w.next = append([]byte(nil), key...)
				return false
			}
			if e.over(kind, value, now) {
				gone = append(gone, append([]byte(nil), key...), nil)
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return e.disk.Put(gone...)
}

// over reports whether the time of a row is over. A key of a job ends with the job.
func (e *Engine) over(kind byte, value []byte, now int64) bool {
	switch kind {
	case rowJob:
		var s jobState
		return unmarshal(&s, value) == nil && s.Final && s.UpdatedAt+keepJobs <= now
	}
	return len(value) == jobKeyBytes+8 && int64(binary.BigEndian.Uint64(value[jobKeyBytes:]))+keepJobs <= now
}
