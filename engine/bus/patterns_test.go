package bus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// modelMatches is matches, written plainly.
func modelMatches(pattern, typ string) bool {
	want, have := strings.Split(pattern, "."), strings.Split(typ, ".")
	if last := len(want) - 1; want[last] == ">" {
		if len(have) < len(want) {
			return false
		}
		want, have = want[:last], have[:last]
	}
	return slices.EqualFunc(want, have, func(w, h string) bool { return w == "*" || w == h })
}

// matches asks the index of this pattern alone.
func matches(pattern, typ string) bool {
	return (*patternSet)(nil).with(&interest{patterns: []string{pattern}}).match([]byte(typ))
}

func TestMatches(t *testing.T) {
	f := func(pattern, typ string, want bool) {
		t.Helper()
		if !ValidPattern(pattern) {
			t.Errorf("%q is no pattern", pattern)
		}
		if got := matches(pattern, typ); got != want || modelMatches(pattern, typ) != want {
			t.Errorf("matches(%q, %q) = %v, model %v, want %v", pattern, typ, got, modelMatches(pattern, typ), want)
		}
	}
	f("process.*", "process.created", true)
	f("process.*", "process", false)
	f("process.*", "process.a.b", false)
	f("process.*", "Process.created", false)
	f("process.*", "processes.created", false)
	f("process.>", "process.a.b", true)
	f("process.>", "process", false)
	f("process.>", "process.", true)
	f("*.created", "process.created", true)
	f("*.created", "a.process.created", false)
	f("a.*.c", "a.b.c", true)
	f("a.*.c", "a..c", true)
	f("a.*.>", "a.b", false)
	f("a.*.>", "a.b.c.d", true)
	f("*", "a", true)
	f("*", "a.b", false)
	f(">", "a", true)
	f(">", "a.b.c", true)
	f("a.b", "a.b", true)
	f("a.b", "a.*", false)
	f("", "", true)
	f(".", ".", true)
	f("*", "*", true)
	f("process.*", "process.>", true)
}

func TestMatchesAgainstModel(t *testing.T) {
	token := rapid.SampledFrom([]string{"a", "b", "ab", "", "*", ">"})
	name := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(token, 1, 6).Draw(t, "tokens"), ".")
	})
	rapid.Check(t, func(t *rapid.T) {
		pattern, typ := name.Draw(t, "pattern"), name.Draw(t, "type")
		if i := strings.Index(pattern, ">"); ValidPattern(pattern) != (i < 0 || i == len(pattern)-1) {
			t.Fatalf("ValidPattern(%q) = %v", pattern, ValidPattern(pattern))
		}
		if ValidPattern(pattern) && matches(pattern, typ) != modelMatches(pattern, typ) {
			t.Fatalf("matches(%q, %q) = %v", pattern, typ, matches(pattern, typ))
		}
	})
}

// TestPatternSetAgainstModel: subscriptions of any size come and go, and each event reaches those
// that a comparison one by one finds, once.
func TestPatternSetAgainstModel(t *testing.T) {
	token := rapid.SampledFrom([]string{"a", "b", "*"})
	pattern := rapid.Custom(func(t *rapid.T) string {
		text := strings.Join(rapid.SliceOfN(token, 1, 5).Draw(t, "tokens"), ".")
		if rapid.Bool().Draw(t, "rest") {
			return text + ".>"
		}
		return text
	})
	rapid.Check(t, func(t *rapid.T) {
		b := New(
			Config{
				StreamBufferEvents:            8,
				MaxEventPatterns:              4 * blockPatterns,
				MaxEventPatternsPerConnection: 4 * blockPatterns,
			},
		)
		defer b.Close()
		var live []*Stream
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			if len(live) > 0 && rapid.IntRange(0, 3).Draw(t, "step") == 0 {
				i := rapid.IntRange(0, len(live)-1).Draw(t, "gone")
				live[i].Detach()
				live = slices.Delete(live, i, i+1)
				continue
			}
			patterns := rapid.SliceOfN(pattern, 1, 3).Draw(t, "patterns")
			for i := range rapid.SampledFrom([]int{0, 0, blockPatterns - 3, 2*blockPatterns + 1}).Draw(t, "others") {
				patterns = append(patterns, fmt.Sprintf("a.other%d", i))
			}
			s, err := b.subscribePatterns(&port{}, rapid.SliceOfN(rapid.SampledFrom([]string{"a", "a.b"}), 0, 1).Draw(t,
				"types"), patterns, 0)
			if err == nil {
				live = append(live, s)
			}
		}
		typ := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "other7", "other300", ""}), 1, 40).Draw(t, "type"), ".")
		want := 0
		for _, s := range live {
			if slices.Contains(s.types, typ) || slices.ContainsFunc(s.interest.patterns, func(p string) bool { return modelMatches(p, typ) }) {
				want++
			}
		}
		m := b.NewMessage(1)
		m.Body = append(m.Body, 'x')
		if got := b.Publish([]byte(typ), m); got != want || b.Wants(typ) != (want > 0) {
			t.Fatalf("%q is delivered to %d of %d", typ, got, want)
		}
		for _, s := range live {
			s.Detach()
			popAll(s)
		}
		if got := b.Stats(); got.Patterns != 0 || len(b.portPatterns) != 0 || b.patterns.Load() != nil {
			t.Fatalf("left over: %+v, %v", got, b.portPatterns)
		}
	})
}

// TestPatternsOfAPort: at its share a connection is refused, and others are not.
func TestPatternsOfAPort(t *testing.T) {
	b := newBus(t, Config{MaxEventPatterns: 4, MaxEventPatternsPerConnection: 2})
	greedy, other := &port{}, &port{}
	f := func(p Port, want error, patterns ...string) *Stream {
		t.Helper()
		s, err := b.subscribePatterns(p, nil, patterns, 0)
		if !errors.Is(err, want) {
			t.Fatalf("%v: %v, want %v", patterns, err, want)
		}
		return s
	}
	first := f(greedy, nil, "a.*")
	f(greedy, ErrPortPatterns, "b.*", "c.*")
	f(greedy, nil, "b.*")
	f(greedy, ErrPortPatterns, "c.*")
	f(other, nil, "c.*", "d.*")
	f(&port{}, ErrPatterns, "e.*")
	first.Detach()
	f(greedy, nil, "e.*")
}

func TestValidPattern(t *testing.T) {
	f := func(pattern string, valid bool) {
		t.Helper()
		if got := ValidPattern(pattern); got != valid {
			t.Errorf("ValidPattern(%q) = %v", pattern, got)
		}
	}
	f("a.b", true)
	f("*", true)
	f(">", true)
	f("a.*.>", true)
	f("a*", false)
	f("a.*b", false)
	f("**", false)
	f("a.>>", false)
	f(">.a", false)
	f("a.>.*", false)
	f(strings.Repeat("*.", MaxPatternTokens-1)+">", true)
	f(strings.Repeat("*.", MaxPatternTokens)+">", false)
}

func subscribePatterns(t *testing.T, b *Bus, types, patterns string) *Stream {
	t.Helper()
	s, err := b.subscribePatterns(&port{}, strings.Fields(types), strings.Fields(patterns), 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPatternsDeliverOnce, whatever matches.
func TestPatternsDeliverOnce(t *testing.T) {
	b := newBus(t, Config{})
	exact := subscribePatterns(t, b, "process.created", "")
	all := subscribePatterns(t, b, "process.created", "process.* > *.created process.created process.*")
	some := subscribePatterns(t, b, "", "*.created")
	wantDelivered(t, "listed and matched", publish(b, "process.created", "1"), 3)
	wantDelivered(t, "matched by two", publish(b, "process.ended", "2"), 1)
	wantDelivered(t, "matched by the rest", publish(b, "other", "3"), 1)
	wantDelivered(t, "a type with a wildcard is a type", publish(b, "process.*", "4"), 1)
	wantPop(t, "exact", exact, "1")
	wantPop(t, "all", all, "1 2 3 4")
	wantPop(t, "some", some, "1")
	if got := b.Stats(); got.Patterns != 5 || got.ActiveSubscribers != 3 {
		t.Errorf("%+v", got)
	}
	all.Detach()
	wantDelivered(t, "after the end", publish(b, "other", "5"), 0)
	some.Discard()
	exact.Detach()
	if got := b.Stats(); got.Patterns != 0 || got.NameBytes != 0 || got.BufferedBytes != 0 || b.patterns.Load() != nil {
		t.Errorf("left over: %+v", got)
	}
}

// TestExactTypesAreNoPatterns: what unchanged clients list means itself (kernel-ipc §4.15).
func TestExactTypesAreNoPatterns(t *testing.T) {
	b := newBus(t, Config{})
	b.Subscribe(&port{}, []string{"process.*", ">"}, 0)
	wantDelivered(t, "another type", publish(b, "process.created", "1"), 0)
	wantDelivered(t, "that very type", publish(b, "process.*", "2"), 1)
	if b.Wants("process.created") || !b.Wants(">") {
		t.Error("Wants differs")
	}
}

func TestWantsPatterns(t *testing.T) {
	b := newBus(t, Config{})
	s := subscribePatterns(t, b, "", "process.*")
	long := "process." + strings.Repeat("x", 100)
	for typ, want := range map[string]bool{"process.created": true, "process": false, "other": false, long: true} {
		if b.Wants(typ) != want || b.WantsBytes([]byte(typ)) != want || b.HasHandler(Subscription, []byte(typ)) != want {
			t.Errorf("Wants(%q) = %v, WantsBytes %v", typ, b.Wants(typ), b.WantsBytes([]byte(typ)))
		}
	}
	s.Detach()
	if b.Wants("process.created") {
		t.Error("wanted after the end")
	}
}

// TestPatternsOfAllStreams: at the limit there is room, one more is refused and leaves nothing.
func TestPatternsOfAllStreams(t *testing.T) {
	b := newBus(t, Config{MaxEventPatterns: 3})
	s := subscribePatterns(t, b, "a", "x.* y.* x.*")
	subscribePatterns(t, b, "", "z.*")
	before := b.Stats()
	if s, err := b.subscribePatterns(&port{}, []string{"b"}, []string{"w.*"}, 0); s != nil ||
		!errors.Is(err, ErrPatterns) {
		t.Fatalf("%v, %v", s, err)
	}
	if got := b.Stats(); got != before || b.Wants("b") || b.Wants("w.1") {
		t.Errorf("%+v, want %+v", got, before)
	}
	if b.Subscribe(&port{}, []string{"b"}, 0) == nil {
		t.Error("types are refused as well")
	}
	s.Detach()
	subscribePatterns(t, b, "", "u.* v.*")
}

// TestNamesOfPatterns: they count as types do.
func TestNamesOfPatterns(t *testing.T) {
	b := newBus(t, Config{SubscriptionNameBytes: 2*nameCost + 4})
	if _, err := b.subscribePatterns(&port{}, []string{"a"}, []string{"bb.*"}, 0); !errors.Is(err, errNames) ||
		b.Stats().Patterns != 0 {
		t.Errorf("one byte above the limit: %v", err)
	}
	subscribePatterns(t, b, "a", "b.*")
	if got := b.Stats().NameBytes; got != 2*nameCost+4 {
		t.Errorf("%d bytes", got)
	}
}

// TestConcurrentPatterns: subscriptions with patterns come and go while others publish. One that
// stays gets every event once and in order; nothing is left over.
func TestConcurrentPatterns(t *testing.T) {
	const publishers, each = 3, 1500
	b := New(Config{StreamBufferEvents: 64, GapBody: binaryGap})
	defer b.Close()
	r := newReader()
	r.stream, _ = b.subscribePatterns(r, []string{"p.0"}, []string{"p.*", "*.1", ">"}, 0)
	var reading, working sync.WaitGroup
	reading.Go(func() { r.run(t, publishers*each) })
	var stop atomic.Bool
	var churn sync.WaitGroup
	for i := range 2 {
		churn.Go(func() {
			for n := 0; !stop.Load(); n++ {
				s, err := b.subscribePatterns(&port{}, []string{"p.1"}, []string{fmt.Sprintf("p.%d", n%5), "*.*"}, 0)
				if err != nil {
					t.Error(err)
					return
				}
				popN(s, 2)
				if i == 0 {
					s.Detach()
					popAll(s)
				} else {
					s.Discard()
				}
			}
		})
	}
	for p := range publishers {
		working.Go(func() {
			for i := range uint64(each) {
				m := b.NewMessage(0)
				m.Body = binary.BigEndian.AppendUint64(append(m.Body, eventTag), i+1)
				m.Body = append(m.Body, byte(p))
				b.Publish(fmt.Appendf(nil, "p.%d", i%3), m)
			}
		})
	}
	working.Wait()
	stop.Store(true)
	churn.Wait()
	reading.Wait()
	if got := r.events + r.gaps; got != publishers*each {
		t.Errorf("%d events and %d lost, want %d", r.events, r.gaps, publishers*each)
	}
	r.stream.Discard()
	if st := b.Stats(); st.BufferedBytes != 0 || st.ActiveSubscribers != 0 || st.Patterns != 0 || st.NameBytes != 0 || registered(b) != 0 {
		t.Errorf("left over: %+v", st)
	}
}

// TestPatternsDeliverOnceAgainstModel: a subscription gets an event exactly if one of its types is
// it or one of its patterns matches it, and then once.
func TestPatternsDeliverOnceAgainstModel(t *testing.T) {
	name := rapid.StringMatching(`[ab*](\.[ab*]){0,2}(\.>)?`)
	rapid.Check(t, func(t *rapid.T) {
		b := New(Config{})
		defer b.Close()
		typ := rapid.StringMatching(`[ab](\.[ab]){0,3}`).Draw(t, "type")
		want := 0
		for range rapid.IntRange(1, 4).Draw(t, "subscriptions") {
			patterns := rapid.SliceOfN(name, 1, 8).Draw(t, "patterns")
			types := rapid.SliceOfN(name, 0, 2).Draw(t, "types")
			if _, err := b.subscribePatterns(&port{}, types, patterns, 0); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(types, typ) || slices.ContainsFunc(patterns, func(p string) bool { return modelMatches(p, typ) }) {
				want++
			}
		}
		m := b.NewMessage(1)
		m.Body = append(m.Body, 'x')
		if got := b.Publish([]byte(typ), m); got != want {
			t.Fatalf("%d deliveries, want %d", got, want)
		}
	})
}

// TestResubscribeAtTheBounds: what the older stream counts is free for its successor, and no more.
func TestResubscribeAtTheBounds(t *testing.T) {
	b := New(Config{MaxEventPatterns: 3, SubscriptionNameBytes: 5 * (nameCost + 2)})
	old, err := b.subscribePatterns(&port{}, []string{"ab"}, []string{"a.", "b."}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.subscribePatterns(&port{}, []string{"zz"}, []string{"c."}, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Resubscribe(old, &port{}, nil, []string{"1.", "2.", "3."}, 0); !errors.Is(err, ErrPatterns) {
		t.Errorf("one pattern more: %v", err)
	}
	old2, err := b.Resubscribe(old, &port{}, []string{"x"}, []string{"1.", "2."}, 0)
	if err != nil {
		t.Fatalf("as many patterns: %v", err)
	}
	old.Detach()
	if st := b.Stats(); st.Patterns != 3 {
		t.Errorf("%d patterns after the older stream has gone", st.Patterns)
	}
	if _, err := b.Resubscribe(old2, &port{}, []string{"x", "y", "z"}, []string{"1."}, 0); !errors.Is(err, errNames) {
		t.Errorf("one name more: %v", err)
	}
}
