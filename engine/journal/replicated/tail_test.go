package replicated_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/fuzz/kit/memstream"
)

// tailer is a node that tails.
type tailer struct {
	*member
	turn  chan struct{}
	turns int // how often a turn was asked for
	due   func() bool
	seen  []journal.Index
	ended chan error
}

func unheard(uint64, time.Duration, bool) {}

// tail begins to follow with a node that has opened its store.
func tail(t *testing.T, n *member) *tailer {
	t.Helper()
	must(t, n.open())
	s := &tailer{member: n, turn: make(chan struct{}), due: func() bool { return true }, ended: make(chan error, 1)}
	return s
}

func (s *tailer) start() {
	go func() {
		s.ended <- s.store.Tail(context.Background(), 1, func() <-chan struct{} {
			s.turns++
			return s.turn
		}, func() bool { return s.due() }, unheard, func(first journal.Index, _ []byte) error {
			s.seen = append(s.seen, first)
			return nil
		})
	}()
}

// TestTailAsksAgainBeforeItEnds: between the decision that it is this node's turn and the end of
// reading, a message of the owner may have come. Then its lease goes on, and the turn is over.
func TestTailAsksAgainBeforeItEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		s := tail(t, m[1])
		asked := 0
		s.due = func() bool {
			asked++
			return asked > 2
		}
		close(s.turn)
		s.start()
		must(t, <-s.ended)
		if asked != 3 || s.turns != 4 || !slices.Equal(s.seen, []journal.Index{1}) {
			t.Errorf("asked %d times, %d turns, seen %d", asked, s.turns, s.seen)
		}
	})
}

// TestTailAsksAgainWhereTheStreamIsBehind: a server that has lost touch with the others shows less
// than was seen of the stream. A standby neither takes over on its word nor takes the log for
// damaged.
func TestTailAsksAgainWhereTheStreamIsBehind(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 3)
		m[0].append("one")
		must(t, m[0].barrier())
		for _, n := range m[1:] {
			s := tail(t, n)
			if n == m[1] { // it has followed, and the other one has begun to
				s.start()
				synctest.Wait()
				m[0].append("two")
				must(t, m[0].barrier())
				synctest.Wait()
			}
			n.client.SetFaults(memstream.Faults{Stale: 1000})
			close(s.turn)
			if n == m[2] {
				s.start()
			}
			time.Sleep(time.Minute)
			select {
			case err := <-s.ended:
				t.Fatalf("it ended: %v, having seen %d of %d messages", err, s.seen, n.log.Len())
			default:
			}
			n.client.SetFaults(memstream.Faults{})
			must(t, <-s.ended)
			if !slices.Equal(s.seen, []journal.Index{1, 2, 3}) {
				t.Errorf("seen %d", s.seen)
			}
		}
	})
}

// TestTailOutlivesSilence: a stream without a leader answers nothing for a while. A standby goes on
// when it is back, whether it had begun to read or not, and whether it is its turn or not.
func TestTailOutlivesSilence(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		s := tail(t, m[1])
		s.client.Part(memstream.Requests)
		s.start()
		silence := func() {
			time.Sleep(time.Minute)
			select {
			case err := <-s.ended:
				t.Fatalf("it ended: %v", err)
			default:
			}
		}
		silence()
		s.client.Part(0)
		synctest.Wait()
		time.Sleep(time.Second)
		s.client.Part(memstream.Answers)
		m[0].append("while the standby is cut off")
		must(t, m[0].barrier())
		silence()
		close(s.turn)
		silence()
		s.client.Part(0)
		must(t, <-s.ended)
		if !slices.Equal(s.seen, []journal.Index{1, 2}) {
			t.Errorf("seen %d", s.seen)
		}
	})
}

// followed is a store that a Log follows until it is its turn, which it is at once.
type followed struct{ *replicated.Store }

// Follow implements journal.Shared.
func (s followed) Follow(from journal.Index, f func(first journal.Index, block []byte) error) error {
	turn := make(chan struct{})
	close(turn)
	return s.Tail(context.Background(), from, func() <-chan struct{} { return turn }, func() bool { return true }, unheard, f)
}

// TestRecoverToOfASharedLog gives up what it names, and nothing of it is followed: every node reads
// the same log afterwards.
func TestRecoverToOfASharedLog(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 3)
		for _, rec := range []string{"two", "three", "four"} {
			m[0].append(rec)
			must(t, m[0].barrier())
		}
		m[0].die()
		n := m[1]
		must(t, n.open())
		log, err := journal.Open(followed{n.store}, journal.Config{RecoverTo: 3})
		must(t, err)
		n.journal = log
		var seen []string
		must(t, log.Replay(0, func(_ journal.Index, rec []byte) error { seen = append(seen, string(rec)); return nil }))
		if !slices.Equal(seen, []string{"two", "three"}) {
			t.Errorf("seen %q", seen)
		}
		n.die()
		must(t, m[2].claim())
		if m[2].state[2] != "two" || m[2].state[3] != "three" || len(m[2].state) != 2 {
			t.Errorf("%v", m[2].state)
		}
	})
}

// TestFollowFromTheEnd: a standby that starts from a snapshot of all there is follows what comes
// then, and takes over where nothing comes. A log that ends before its snapshot is damaged.
func TestFollowFromTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 4)
		m[0].append("one")
		must(t, m[0].barrier())
		end := m[0].journal.Durable()
		must(t, m[1].open())
		f := follow(m[1], end)
		synctest.Wait()
		m[0].append("two")
		must(t, m[0].barrier())
		must(t, f.stop())
		if len(f.state) != 1 || f.state[end+1] != "two" {
			t.Errorf("it follows %v", f.state)
		}
		for i, after := range []journal.Index{end + 1, end + 3} {
			n := m[2+i]
			must(t, n.open())
			log, err := journal.Open(followed{n.store}, journal.Config{})
			must(t, err)
			n.journal = log
			err = log.Replay(after, func(i journal.Index, rec []byte) error {
				t.Errorf("record %d (%q) is shown", i, rec)
				return nil
			})
			if (err == nil) != (i == 0) {
				t.Errorf("after %d of %d: %v", after, end+1, err)
			}
		}
	})
}

// TestTailEnds by an error of its caller, by its context, and where what is next was purged.
func TestTailEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		must(t, m[1].open())
		never, wrong := make(chan struct{}), errors.New("wrong")
		run := func(ctx context.Context, f func(journal.Index, []byte) error) error {
			return m[1].store.Tail(ctx, 1, func() <-chan struct{} { return never }, func() bool { return false }, unheard, f)
		}
		if err := run(context.Background(), func(journal.Index, []byte) error { return wrong }); err != wrong {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		if err := run(ctx, func(journal.Index, []byte) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		for range 2 {
			m[0].append("one")
			must(t, m[0].barrier())
		}
		purge := func(below uint64) { must(t, m[0].client.Purge(context.Background(), m[0].store.Fence()+below)) }
		for _, below := range []uint64{2, 3} { // after it has begun, and before
			err := run(context.Background(), func(journal.Index, []byte) error {
				purge(below)
				return nil
			})
			if !errors.Is(err, replicated.ErrRebuild) {
				t.Errorf("%v", err)
			}
		}
	})
}

// stalled is a stream that shows a standby nothing by itself, as when the node has died that was to
// show it.
type stalled struct{ replicated.Stream }

func (s stalled) Read(ctx context.Context, from, to uint64, f func(m *replicated.Message) error) error {
	if to == replicated.Forever {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.Stream.Read(ctx, from, to, f)
}

// TestTailAsksForTheRest: a standby whose turn it is reads what it was not shown, and takes over
// with it.
func TestTailAsksForTheRest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		m[0].append("two")
		must(t, m[0].barrier())
		local, err := m[1].disk.Open()
		must(t, err)
		m[1].store, err = replicated.Open(context.Background(), replicated.Config{Stream: stalled{m[1].client}, Chunks: m[1].client, Local: local, Lease: lease})
		must(t, err)
		s := &tailer{member: m[1], turn: make(chan struct{}), due: func() bool { return true }, ended: make(chan error, 1)}
		close(s.turn)
		s.start()
		must(t, <-s.ended)
		if !slices.Equal(s.seen, []journal.Index{1, 2}) || s.turns != 2 {
			t.Errorf("seen %d in %d turns", s.seen, s.turns)
		}
	})
}

// hiding is a stream that does not show its end yet, as JetStream does not show messages that are
// on their way to a majority.
type hiding struct {
	stalled
	from   uint64 // the first message that it hides
	hidden bool
}

func (s *hiding) State(ctx context.Context) (replicated.State, error) {
	st, err := s.Stream.State(ctx)
	if s.hidden {
		st.Last = s.from - 1
	}
	return st, err
}

// TestTailGoesOnAfterARefusal: what a dead owner has sent may come to light when another node takes
// over. That node reads it, and takes over then.
func TestTailGoesOnAfterARefusal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		st, err := m[0].client.State(context.Background())
		must(t, err)
		m[0].append("two")
		must(t, m[0].barrier())
		local, err := m[1].disk.Open()
		must(t, err)
		hides := &hiding{stalled: stalled{m[1].client}, from: st.Last + 1, hidden: true}
		m[1].store, err = replicated.Open(context.Background(), replicated.Config{Stream: hides, Chunks: m[1].client, Local: local, Lease: lease})
		must(t, err)
		s := &tailer{member: m[1], turn: make(chan struct{}), ended: make(chan error, 1)}
		asked := 0
		s.due = func() bool {
			asked++
			hides.hidden = asked < 3 // after two refusals
			return true
		}
		close(s.turn)
		s.start()
		must(t, <-s.ended)
		if !slices.Equal(s.seen, []journal.Index{1, 2}) || asked != 4 || s.store.Fence() == 0 {
			t.Errorf("seen %d, asked %d times, fence %d", s.seen, asked, s.store.Fence())
		}
		if err := s.store.WriteBlock(3, []byte("three")); err != nil {
			t.Error(err)
		}
		m[0].append("late")
		if err := m[0].barrier(); err == nil {
			t.Error("the former owner appends")
		}
	})
}

// TestTailKnowsTheEnd: the last message that is there when a node begins is the end, and so is each
// one that comes then.
func TestTailKnowsTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		for _, rec := range []string{"one", "two", "three"} {
			m[0].append(rec)
			must(t, m[0].barrier())
		}
		must(t, m[1].open())
		var ends []bool
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			heard := func(_ uint64, _ time.Duration, end bool) { ends = append(ends, end) }
			done <- m[1].store.Tail(ctx, 1, func() <-chan struct{} { return nil }, func() bool { return false }, heard, func(journal.Index, []byte) error { return nil })
		}()
		synctest.Wait()
		before := len(ends)
		m[0].append("four")
		must(t, m[0].barrier())
		synctest.Wait()
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if before < 3 || slices.Index(ends, true) != before-1 || len(ends) == before || slices.Contains(ends[before:], false) {
			t.Errorf("%v, %d of them before", ends, before)
		}
	})
}
