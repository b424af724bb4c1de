package bus

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The heap must always know each query's place and hand out the earliest deadline.
func TestDeadlinesHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d deadlines
		model := make(map[*Query]struct{})
		base := time.Unix(0, 0)
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				q := &Query{deadline: base.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "deadline")))}
				d.push(q)
				model[q] = struct{}{}
			},
			"remove": func(t *rapid.T) {
				if len(d) == 0 {
					t.Skip()
				}
				q := d[rapid.IntRange(0, len(d)-1).Draw(t, "place")]
				d.remove(q.index)
				delete(model, q)
			},
			"": func(t *rapid.T) {
				if len(d) != len(model) {
					t.Fatalf("heap has %d queries, want %d", len(d), len(model))
				}
				for i, q := range d {
					if _, in := model[q]; !in || q.index != i {
						t.Fatalf("place %d holds a query with index %d", i, q.index)
					}
					if q.deadline.Before(d[max(i-1, 0)/2].deadline) {
						t.Fatalf("place %d is earlier than its parent", i)
					}
				}
			},
		})
	})
}
