package sessionstate

import (
	"strings"
	"testing"
)

func TestCopyOnWrite(t *testing.T) {
	session := start()
	want := snapshot(&session)
	tool := session.Clone()
	tool.Set(0, Artifact{Type: "new"})
	tool.Set(1, Artifact{Type: "other"})
	tool.Remove(6)
	if got := snapshot(&session); got != want {
		t.Errorf("a write to the clone changed the state to %s", got)
	}
	if _, ok := tool.Get(6); ok {
		t.Error("slot 6 is still there after Remove")
	}
	a, _ := session.Get(1)
	again := session.Clone()
	if b, _ := again.Get(1); a != b {
		t.Error("Clone copies an artifact")
	}
}

func TestNoSlotOutside(t *testing.T) {
	for _, n := range []int{-1, Slots, Slots + 1, 255, 1 << 40, -1 << 40} {
		s := start()
		before := s
		s.Set(n, Artifact{Type: "x"})
		s.Remove(n)
		if a, ok := s.Get(n); ok || a != nil || s != before {
			t.Errorf("slot %d: %v, state %s", n, a, snapshot(&s))
		}
	}
}

func TestSetKeepsWhatReplyCanCarry(t *testing.T) {
	f := func(in, want Artifact) {
		t.Helper()
		var s State
		s.Set(2, in)
		if a, ok := s.Get(2); !ok || *a != want {
			t.Errorf("%+q becomes %+v, want %+v", in.Type, *a, want)
		}
		var empty State
		next, why := empty.Apply(s.AppendSnapshot(nil))
		if a, ok := next.Get(2); why != "" || !ok || *a != want {
			t.Errorf("%+v comes back as %+v %q", want, a, why)
		}
	}
	f(Artifact{"t", "p\x00", "\u00e9\U0001f600\ufffd\"\\\n\x7f", 5}, Artifact{"t", "p\x00", "\u00e9\U0001f600\ufffd\"\\\n\x7f", 5})
	f(Artifact{"\xff", "a\xffb", "\xe4\xb8", 0}, Artifact{"\ufffd", "a\ufffdb", "\ufffd\ufffd", 0})
	f(Artifact{Size: -1}, Artifact{})
	f(Artifact{Size: maxSize}, Artifact{Size: maxSize})
	f(Artifact{Size: maxSize + 1}, Artifact{Size: maxSize})
}

func TestBytes(t *testing.T) {
	var s State
	if n := s.Bytes(); n != 0 {
		t.Errorf("an empty state has %d bytes", n)
	}
	s.Set(0, Artifact{"ab", "cde", "fghi", 1000})
	s.Set(7, Artifact{Type: "\u00e9"})
	s.Set(3, Artifact{Content: strings.Repeat("x", 100)})
	s.Set(3, Artifact{})
	if n := s.Bytes(); n != 11 {
		t.Errorf("%d bytes, want 11", n)
	}
}

func TestDelta(t *testing.T) {
	f := func(want string, write func(*State)) {
		t.Helper()
		before := start()
		after := before.Clone()
		write(&after)
		if got := string(AppendDelta([]byte("x"), &before, &after)); got != "x"+want {
			t.Errorf("delta %s, want %s", got, want)
		}
	}
	first := start()
	one, _ := first.Get(1)
	change := func(fn func(*Artifact)) func(*State) {
		return func(s *State) { a := *one; fn(&a); s.Set(1, a) }
	}
	delta := func(member string) string { return `{"delta":true,"slots":{` + member + `},"removed_slots":[]}` }

	f(EmptyDelta, func(*State) {})
	f(EmptyDelta, change(func(*Artifact) {}))
	f(EmptyDelta, func(s *State) { s.Set(3, Artifact{}); s.Remove(3); s.Remove(4) })
	f(EmptyDelta, func(s *State) { s.Remove(1); s.Set(1, *one) })
	// A slot differs if any member does.
	f(delta(strings.Replace(ds1, "text", "t", 1)), change(func(a *Artifact) { a.Type = "t" }))
	f(delta(strings.Replace(ds1, "one", "", 1)), change(func(a *Artifact) { a.Provenance = "" }))
	f(delta(strings.Replace(ds1, `{\"a\":1}`, `{\"a\":2}`, 1)), change(func(a *Artifact) { a.Content = `{"a":2}` }))
	f(delta(strings.Replace(ds1, "7}", "8}", 1)), change(func(a *Artifact) { a.Size = 8 }))
	f(delta(`"3":{"type":"","provenance":"","content_json":"","size_bytes":0}`), func(s *State) { s.Set(3, Artifact{}) })
	f(`{"delta":true,"slots":{},"removed_slots":[1,6]}`, func(s *State) { s.Remove(6); s.Remove(1) })
	f(`{"delta":true,"slots":{"0":{"type":"a","provenance":"","content_json":"","size_bytes":0},`+
		`"7":{"type":"b","provenance":"","content_json":"","size_bytes":0}},"removed_slots":[6]}`, func(s *State) {
		s.Set(7, Artifact{Type: "b"})
		s.Remove(6)
		s.Set(0, Artifact{Type: "a"})
	})
	// What a worker sends back is a write like any other.
	f(`{"delta":true,"slots":{"2":{"type":"w","provenance":"","content_json":"","size_bytes":0}},"removed_slots":[1,6]}`, func(s *State) {
		*s, _ = s.Apply([]byte(`{"slots":{"2":{"type":"w"}}}`))
	})
	f(EmptyDelta, func(s *State) { *s, _ = s.Apply([]byte(`{"slots":{` + ds1 + `,` + ds6 + `}}`)) })
	f(EmptyDelta, func(s *State) { *s, _ = s.Apply([]byte(`{"slots":5}`)) })
}

func TestSlotsNotWrittenAreNotCompared(t *testing.T) {
	before := start()
	var after State
	if got := string(AppendDelta(nil, &before, &after)); got != EmptyDelta {
		t.Errorf("delta %s of a state nobody wrote to", got)
	}
}

// Remove empties slot; a number that is no slot changes nothing. It allocates only where the slot
// is not empty.
func (s *State) Remove(slot int) {
	if uint(slot) < Slots {
		s.put(slot, nil)
	}
}
