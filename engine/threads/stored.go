package threads

import "trunkline/engine/store/rows"

// StoredRows returns the rows of a database.
func StoredRows(db *rows.DB) Rows { return &storedRows{DB: db, batch: db.NewBatch()} }

type storedRows struct {
	*rows.DB
	batch *rows.Batch
}

// Put implements Rows.
func (r *storedRows) Put(pairs ...[]byte) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == nil {
			r.batch.Delete(pairs[i])
		} else {
			r.batch.Set(pairs[i], pairs[i+1])
		}
	}
	return r.batch.Commit()
}

// Flush implements Rows.
func (r *storedRows) Flush(mark uint64) (identity []byte, err error) {
	id := r.Identity()
	return id[:], r.DB.Flush(mark)
}

// Fits implements Rows. Rows behind the end of the journal are no damage: a message beyond the last
// one of its thread is not looked at, and written anew.
func (r *storedRows) Fits(identity []byte, mark uint64) error {
	var id [16]byte
	copy(id[:], identity)
	return r.Check(id, mark, ^uint64(0))
}
