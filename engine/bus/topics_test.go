package bus

import (
	"fmt"
	"slices"
	"testing"
)

// TestTopics: each type that a live stream lists is shown once, with its streams of all kinds, up
// to the limit.
func TestTopics(t *testing.T) {
	b := newBus(t, Config{})
	p := &port{}
	f := func(limit int, more bool, want ...Topic) {
		t.Helper()
		if got, m := b.Topics(limit); !slices.Equal(got, want) || m != more {
			t.Errorf("Topics(%d) = %+v, %v, want %+v, %v", limit, got, m, want, more)
		}
	}
	f(10, false)
	first := b.Subscribe(p, []string{"a", "b"}, 0)
	second := b.Subscribe(p, []string{"b"}, 0)
	command, _ := b.Handle(CommandHandler, p, []string{"b", "c"}, 0)
	query, _ := b.Handle(QueryHandler, p, []string{"c", "d"}, 0)
	all := []Topic{{"a", 1, false, false}, {"b", 2, true, false}, {"c", 0, true, true}, {"d", 0, false, true}}
	f(4, false, all...)
	if got, more := b.Topics(3); len(got) != 3 || !more {
		t.Errorf("Topics(3) = %+v, %v, want three and more", got, more)
	}
	first.Detach()
	f(10, false, append([]Topic{{"b", 1, true, false}}, all[2:]...)...)
	second.Detach()
	command.Detach()
	f(10, false, Topic{"c", 0, false, true}, Topic{"d", 0, false, true})
	query.Detach()
	f(10, false)
	b.subscribePatterns(p, []string{"e"}, []string{"p.*", "p.>"}, 0)
	last, _ := b.subscribePatterns(p, nil, []string{"p.>"}, 0)
	g := func(limit int, more bool, want ...Topic) {
		t.Helper()
		if got, m := b.Patterns(limit); !slices.Equal(got, want) || m != more {
			t.Errorf("Patterns(%d) = %+v, %v, want %+v, %v", limit, got, m, want, more)
		}
	}
	g(2, false, Topic{Name: "p.*", Subscribers: 1}, Topic{Name: "p.>", Subscribers: 2})
	g(1, true, Topic{Name: "p.*", Subscribers: 1})
	last.Detach()
	g(2, false, Topic{Name: "p.*", Subscribers: 1}, Topic{Name: "p.>", Subscribers: 1})
	b = newBus(t, Config{})
	g(2, false)
	for i := range 500 {
		b.Subscribe(p, []string{fmt.Sprint("t", i)}, 0)
	}
	if got, more := b.Topics(500); len(got) != 500 || more {
		t.Errorf("%d of 500 types, more %v", len(got), more)
	}
	if got, more := b.Topics(499); len(got) != 499 || !more {
		t.Errorf("%d of 500 types, more %v", len(got), more)
	}
}
