package table

// Do calls f with the entry of key, under its shard's lock, and reports whether key is there. f may
// use all methods of the entry but Release, and none of the table's. It does not allocate.
func (t *Table[V]) Do(key []byte, f func(e *Entry[V])) bool {
	e := t.Acquire(key)
	if e == nil {
		return false
	}
	defer e.Release()
	f(e)
	return true
}
