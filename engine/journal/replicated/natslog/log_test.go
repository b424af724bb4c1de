package natslog_test

import (
	"context"
	"fmt"
	"testing"

	"trunkline/engine/journal/replicated"
	"trunkline/engine/journal/replicated/natstest"
)

// TestStream holds the streams of a cluster to the contract of a replicated.Stream.
func TestStream(t *testing.T) {
	c := natstest.New(t)
	nc := c.Connect(0)
	defer nc.Close()
	l := c.Open(nc, "contract")
	ctx := context.Background()
	add := func(after uint64, marks int, id string, data string) replicated.Outcome {
		return l.Append(&replicated.Append{Message: replicated.Message{Kind: replicated.KindBlock, First: 7, Data: []byte(data)}, After: after, Marks: marks, ID: id})()
	}
	if o := add(0, 5, "a", "first"); o.Err != nil || o.Seq != 6 {
		t.Fatalf("first append: %+v", o)
	}
	if o := add(0, 5, "a", "first"); o.Err != nil || o.Seq != 6 {
		t.Fatalf("the same again: %+v", o)
	}
	if o := add(0, 5, "b", "other"); o.Err == nil {
		t.Fatalf("another one: %+v", o)
	} else {
		fmt.Println(o.Err)
	}
	for i := range uint64(3) {
		if o := add(6+i, 0, fmt.Sprint("c", i), "next"); o.Err != nil || o.Seq != 7+i {
			t.Fatalf("next: %+v", o)
		}
	}
	if o := add(6, 0, "c0", "next"); o.Err != nil || o.Seq != 7 {
		t.Fatalf("next again: %+v", o)
	}
	st, err := l.State(ctx)
	if err != nil || st.First != 1 || st.Last != 9 || st.Deleted != 0 || st.Control != nil {
		t.Fatalf("state %+v: %v", st, err)
	}
}
