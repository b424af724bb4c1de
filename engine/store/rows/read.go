package rows

import (
	"github.com/cockroachdb/pebble/v2"
)

// Get appends the value of a key to dst. ok is false where there is no such row. For a key that is
// not there it reads no block, as a rule.
func (d *DB) Get(dst, key []byte) (value []byte, ok bool, err error) {
	if len(key) == 0 || key[0] == reserved {
		return dst, false, nil
	}
	d.gate.RLock()
	defer d.gate.RUnlock()
	return d.get(dst, key)
}

func (d *DB) get(dst, key []byte) (value []byte, ok bool, err error) {
	defer d.sober(new(bool), &err)
	if err := d.readable(); err != nil || d.db == nil {
		return dst, false, err
	}
	// DB.Get does not use the filters of the last level, which has most rows.
	it, err := d.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return dst, false, d.readError("read", err)
	}
	if it.SeekPrefixGE(key) {
		var v []byte
		v, err = it.ValueAndErr()
		ok = err == nil
		dst = append(dst, v...)
	}
	if also := it.Close(); err == nil {
		err = also
	}
	if err != nil {
		return dst, false, d.readError("read", err)
	}
	return dst, ok, nil
}

// Scan calls f with the rows from lower on and below upper, in the order of their keys or the
// reverse, as they were at the call, until f returns false. nil for lower or upper is no bound. key
// and value are lent until f returns. f must not use the DB. A scan keeps the files and the memory
// of its moment, so it should be short.
func (d *DB) Scan(lower, upper []byte, reverse bool, f func(key, value []byte) bool) (err error) {
	calls := false
	d.gate.RLock()
	defer d.gate.RUnlock()
	defer d.sober(&calls, &err)
	if err := d.readable(); err != nil || d.db == nil {
		return err
	}
	if len(lower) == 0 || lower[0] == reserved {
		lower = firstKey
	}
	it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return d.readError("read", err)
	}
	defer it.Close()
	begin, next := it.First, it.Next
	if reverse {
		begin, next = it.Last, it.Prev
	}
	for ok := begin(); ok; ok = next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return d.readError("read", err)
		}
		calls = true
		more := f(it.Key(), value)
		calls = false
		if !more {
			return nil
		}
	}
	if err := it.Error(); err != nil {
		return d.readError("read", err)
	}
	return nil
}

// firstKey is below all keys of the caller.
var firstKey = []byte{reserved + 1}
