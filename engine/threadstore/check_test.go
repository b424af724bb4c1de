package threadstore

import (
	"fmt"
	"testing"
)

// TestCheckRows: rows of every kind are read, and each of them is bad if it is cut.
func TestCheckRows(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	for i := range 600 {
		r.post(alice, id, fmt.Sprint("body", i), fmt.Sprint("k", i))
	}
	r.trigger(id, "r", "job")
	r.Finish(r.claimOne().ID, "", r.now)
	r.sync()
	if err := r.storeAll(r.safe()); err != nil {
		t.Fatal(err)
	}
	bad := 0
	check := func() uint64 {
		t.Helper()
		bad = 0
		n, err := CheckRows(r.rows, func(error) { bad++ })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := check()
	if bad > 0 {
		t.Fatal(bad, "are bad")
	}
	kinds := map[byte]bool{}
	for key := range r.rows.rows {
		kinds[key[0]] = true
	}
	for _, kind := range []byte{rowMessage, rowKey, rowAudit, rowJob, rowJobKey} {
		if !kinds[kind] {
			t.Errorf("no row of kind %q", kind)
		}
	}
	filters := 0
	for key, value := range r.rows.rows {
		if r.rows.rows[key] = value[:len(value)-1]; key[:2] == "kf" {
			filters++ // any bytes are a filter
		}
	}
	if check(); bad != int(n)-filters {
		t.Errorf("%d of %d are bad", bad, n)
	}
	r.rows.rows = map[string]string{"x": "y"}
	if check(); bad != 1 {
		t.Error("a row of no kind is good")
	}
}
