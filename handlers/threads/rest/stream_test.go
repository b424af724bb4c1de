package rest

import (
	"fmt"
	"net/url"
	"testing"
)

// FuzzPosition: a position that is accepted is within its limits, and its event id leads back to
// it.
func FuzzPosition(f *testing.F) {
	f.Add("thread_id=th_1&since_seq=4", "")
	f.Add("thread_id=th_1", "9007199254740991")
	f.Add("thread_id=*", "th_1:7")
	f.Add("thread_id=%2a&since_seq=x", ":1")
	f.Fuzz(func(t *testing.T, query, last string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		p, fault := positionOf(values, last)
		if fault != nil {
			return
		}
		if p.seq >= 1<<53 || len(p.thread) == 0 || len(p.thread) > 256 || p.resume != (p.all && last != "") {
			t.Fatalf("%+v of %q after %q", p, query, last)
		}
		id := fmt.Sprint(p.seq)
		if p.resume {
			id = string(p.thread) + ":" + id
		}
		if again, fault := positionOf(values, id); last != "" && (fault != nil || again.seq != p.seq || string(again.thread) != string(p.thread)) {
			t.Errorf("%q leads to %+v, not to %+v", id, again, p)
		}
	})
}
