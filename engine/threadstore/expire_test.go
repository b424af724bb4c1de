package threadstore

import "testing"

// TestExpire removes keys and jobs when their time is over, and not before.
func TestExpire(t *testing.T) {
	r := newRig(t, Config{KeyWindow: 1000})
	id := r.create()
	r.post(alice, id, "x", "k")
	r.trigger(id, "r", "job")
	r.Finish(r.claimOne().ID, "", r.now)
	r.sync()
	if err := r.storeAll(r.safe()); err != nil {
		t.Fatal(err)
	}
	count := func(kind byte) (n int) {
		_ = r.rows.Scan([]byte{kind}, []byte{kind + 1}, false, func(_, _ []byte) bool { n++; return true })
		return n
	}
	step := func(by int64, keys, jobs int) {
		t.Helper()
		r.now += by
		if err := r.expire(r.now); err != nil {
			t.Fatal(err)
		}
		if k, j, q := r.keys.Stats().Runs, count(rowJob), count(rowJobKey); k != keys || j != jobs || q != jobs {
			t.Errorf("after %d ms: %d keys, %d jobs, %d keys of jobs; want %d and %d", by, k, j, q, keys, jobs)
		}
	}
	step(999, 1, 1)
	step(1, 0, 1)
	if p := r.post(alice, id, "y", "k"); p.Replay || p.Seq != 2 {
		t.Errorf("%+v for a key whose time is over", p)
	}
	step(keepJobs-1001, 0, 1)
	step(1, 0, 0)
}
