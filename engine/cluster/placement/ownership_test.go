package placement_test

import (
	"testing"
	"time"

	"trunkline/engine/cluster/placement"
)

// story is what happens to the partition on node b, one event a line.
type story struct {
	t   *testing.T
	own placement.Ownership
}

func newStory(t *testing.T, replicas ...string) *story {
	cfg := &placement.Config{Node: "b", Timing: placement.Timing{Lease: 1000, Margin: 50, Renew: 250, Stagger: 100}}
	own, do := placement.Start(cfg, 0, replicas)
	if do != placement.Rebuild {
		t.Fatalf("starts with %b", do)
	}
	return &story{t, own}
}

// is takes an event and holds what comes of it.
func (s *story) is(state placement.State, do placement.Actions, e placement.Event) {
	s.t.Helper()
	own, got := s.own.Step(e)
	s.own = own
	if got != do || own.State() != state {
		s.t.Errorf("event %d at %d: state %d, do %b; want %d, %b", e.Kind, e.Now, own.State(), got, state, do)
	}
}

func (s *story) due(want time.Duration) {
	s.t.Helper()
	if got := s.own.Due(); got != want {
		s.t.Errorf("due at %d, want %d", got, want)
	}
}

func (s *story) serves(from, until time.Duration) {
	s.t.Helper()
	if !s.own.MayServe(from) || !s.own.MayServe(until-1) || s.own.MayServe(until) {
		s.t.Errorf("serves at %d, %d, %d: %v, %v, %v", from, until-1, until, s.own.MayServe(from), s.own.MayServe(until-1), s.own.MayServe(until))
	}
}

func (s *story) hint(want string) {
	s.t.Helper()
	if got := s.own.Hint(); got != want {
		s.t.Errorf("hint %q, want %q", got, want)
	}
}

const (
	tick     = placement.Tick
	observed = placement.Observed
	won      = placement.ClaimWon
	acked    = placement.Acked
)

type event = placement.Event

// ownerStory is a story in which b owns the partition since 1000.
func ownerStory(t *testing.T, replicas ...string) *story {
	s := newStory(t, replicas...)
	s.is(placement.Follower, placement.Follow, event{Kind: placement.Rebuilt, Now: 10})
	s.is(placement.Claiming, placement.Claim, event{Kind: tick, Now: 1000})
	s.is(placement.Owner, placement.Serve, event{Kind: won, Now: 1005, Sent: 1000})
	return s
}

func TestFirstOwner(t *testing.T) {
	s := newStory(t, "b", "c")
	s.due(placement.Never)
	s.is(placement.Lost, 0, event{Kind: tick, Now: 5000})
	s.hint("")
	s = newStory(t, "b", "c")
	s.is(placement.Follower, placement.Follow, event{Kind: placement.Rebuilt, Now: 10})
	s.due(1000)
	s.is(placement.Follower, 0, event{Kind: tick, Now: 999})
	s.is(placement.Claiming, placement.Claim, event{Kind: tick, Now: 1000})
	s.due(placement.Never)
	s.is(placement.Claiming, 0, event{Kind: won, Now: 1005, Sent: 999})
	s.is(placement.Owner, placement.Serve, event{Kind: won, Now: 1005, Sent: 1000})
	s.serves(1005, 1950)
	s.due(1250)
	s.is(placement.Owner, placement.Renew, event{Kind: tick, Now: 1250})
	s.due(1500)
	s.is(placement.Owner, 0, event{Kind: acked, Now: 1260, Sent: 1250})
	s.serves(1260, 2200)
	s.is(placement.Owner, 0, event{Kind: acked, Now: 1270, Sent: 999}) // an append of an earlier claim
	s.serves(1260, 2200)
}

func TestLeaseRunsOut(t *testing.T) {
	s := ownerStory(t, "b", "c")
	s.is(placement.Owner, placement.Suspend|placement.Renew, event{Kind: tick, Now: 1950})
	s.is(placement.Owner, 0, event{Kind: tick, Now: 1951})
	s.is(placement.Owner, 0, event{Kind: acked, Now: 2900, Sent: 1950})
	if s.own.MayServe(2900) {
		t.Error("serves by an answer that took a lease")
	}
	s.is(placement.Owner, placement.Renew, event{Kind: tick, Now: 2901})
	s.is(placement.Owner, placement.Serve, event{Kind: acked, Now: 2910, Sent: 2901})
	s.serves(2910, 3851)
}

func TestClaimAnsweredTooLate(t *testing.T) {
	s := newStory(t, "b", "c")
	s.is(placement.Follower, placement.Follow, event{Kind: placement.Rebuilt, Now: 10})
	s.is(placement.Claiming, placement.Claim, event{Kind: tick, Now: 1000})
	s.is(placement.Owner, placement.Serve|placement.Suspend|placement.Renew, event{Kind: won, Now: 1950, Sent: 1000})
	if s.own.MayServe(1950) {
		t.Error("serves after a pause")
	}
}

func TestStandbysWaitForEachOther(t *testing.T) {
	f := func(due time.Duration, replicas []string, before ...event) {
		t.Helper()
		s := newStory(t, replicas...)
		s.is(placement.Follower, placement.Follow, event{Kind: placement.Rebuilt, Now: 10})
		for _, e := range before {
			s.is(placement.Follower, 0, e)
		}
		s.due(due)
	}
	f(placement.Never, []string{"a", "c"})
	f(1100, []string{"a", "b"})
	f(1200, []string{"a", "c", "b"})
	f(1500, []string{"a", "b"}, event{Kind: observed, Node: "a", Now: 500})
	f(1600, []string{"a", "c", "b"}, event{Kind: observed, Node: "a", Now: 500})
	f(1500, []string{"a", "c", "b"}, event{Kind: observed, Node: "a", Now: 500}, event{Kind: placement.PeerDead, Node: "c"})
	f(1600, []string{"a", "c", "b"}, event{Kind: observed, Node: "a", Now: 500}, event{Kind: placement.PeerDead, Node: "c"}, event{Kind: placement.PeerAlive, Node: "c"})
	f(1700, []string{"a", "c", "b"}, event{Kind: placement.PeerDead, Node: "c"}, event{Kind: observed, Node: "c", Now: 600})
	f(1800, []string{"a", "c", "b"}, event{Kind: placement.PeerDead, Node: "c"}, event{Kind: observed, Node: "c", Now: 600}, event{Kind: observed, Node: "a", Now: 700})
	f(1600, []string{"a", "c", "b"}, event{Kind: observed, Node: "a", Now: 500}, event{Kind: placement.PeerDead, Node: "c"},
		event{Kind: placement.Assigned, Replicas: placement.Replicas{"a", "c", "b"}})
	f(1500, []string{"a", "b"}, event{Kind: observed, Node: "a", Now: 500}, event{Kind: placement.PeerDead, Node: "a"})
	f(600, []string{"b", "a"}, event{Kind: observed, Node: "a", Now: 500}, event{Kind: placement.ObservedRelease, Node: "a", Now: 600})
	f(700, []string{"a", "b"}, event{Kind: placement.ObservedRelease, Node: "a", Now: 600})
	f(1800, []string{"b", "a", "c"}, event{Kind: placement.ObservedRelease, Node: "a", Now: 600}, event{Kind: observed, Node: "c", Now: 800})
	f(1500, []string{"b", "a"}, event{Kind: observed, Node: "a", Now: 500}, event{Kind: observed, Node: "b", Now: 900})
	f(placement.Never, []string{"a", "b"}, event{Kind: placement.Assigned, Replicas: placement.Replicas{"a", "c"}})
}

func TestClaimThatDoesNotWin(t *testing.T) {
	for _, kind := range []placement.EventKind{placement.ClaimRefused, placement.Failed} {
		s := newStory(t, "b", "c")
		s.is(placement.Follower, placement.Follow, event{Kind: placement.Rebuilt, Now: 10})
		s.is(placement.Claiming, placement.Claim, event{Kind: tick, Now: 1000})
		s.is(placement.Claiming, 0, event{Kind: kind, Now: 1001, Sent: 999})
		s.is(placement.Follower, 0, event{Kind: kind, Now: 1010, Sent: 1000})
		s.due(1110)
		s.is(placement.Follower, 0, event{Kind: observed, Node: "c", Now: 1020})
		s.due(2020)
		s.hint("c")
	}
	s := newStory(t, "b", "c")
	s.is(placement.Follower, placement.Follow, event{Kind: placement.Rebuilt, Now: 10})
	s.is(placement.Claiming, placement.Claim, event{Kind: tick, Now: 1000})
	s.is(placement.Follower, 0, event{Kind: observed, Node: "c", Now: 1001})
	s.is(placement.Follower, 0, event{Kind: won, Now: 1002, Sent: 1000})
}

func TestOwnershipIsLost(t *testing.T) {
	f := func(e event) {
		t.Helper()
		s := ownerStory(t, "b", "c")
		s.is(placement.Lost, placement.Refuse|placement.Rebuild, e)
		if s.own.MayServe(e.Now) {
			t.Error("serves what it has lost")
		}
		s.is(placement.Lost, 0, event{Kind: acked, Now: e.Now + 1, Sent: 1100})
	}
	f(event{Kind: placement.Failed, Now: 1200, Sent: 1100})
	f(event{Kind: placement.Failed, Now: 1200, Sent: 1000})
	f(event{Kind: observed, Node: "c", Now: 1200})
	f(event{Kind: placement.ObservedRelease, Node: "c", Now: 1200})
	s := ownerStory(t, "b", "c")
	s.is(placement.Owner, 0, event{Kind: placement.Failed, Now: 1200, Sent: 999}) // of an earlier claim
	s.is(placement.Owner, 0, event{Kind: observed, Node: "b", Now: 1200})
}

// TestLostOwnerComesBack: what a node has appended itself makes it wait for no lease.
func TestLostOwnerComesBack(t *testing.T) {
	s := ownerStory(t, "b", "c")
	s.is(placement.Lost, placement.Refuse|placement.Rebuild, event{Kind: placement.Failed, Now: 1200, Sent: 1100})
	s.is(placement.Lost, 0, event{Kind: observed, Node: "b", Now: 1210})
	s.is(placement.Follower, placement.Follow, event{Kind: placement.Rebuilt, Now: 1220})
	s.is(placement.Claiming, placement.Claim, event{Kind: tick, Now: 1220})
}

// TestReleaseIsOver: a release that a node has claimed after does not shorten a later lease.
func TestReleaseIsOver(t *testing.T) {
	s := newStory(t, "b", "a")
	s.is(placement.Follower, placement.Follow, event{Kind: placement.Rebuilt, Now: 10})
	s.is(placement.Follower, 0, event{Kind: placement.ObservedRelease, Node: "a", Now: 600})
	s.is(placement.Claiming, placement.Claim, event{Kind: tick, Now: 600})
	s.is(placement.Owner, placement.Serve, event{Kind: won, Now: 605, Sent: 600})
	s.is(placement.Lost, placement.Refuse|placement.Rebuild, event{Kind: placement.Failed, Now: 700, Sent: 650})
	s.is(placement.Follower, placement.Follow, event{Kind: placement.Rebuilt, Now: 710})
	s.due(1600)
}

func TestStepDown(t *testing.T) {
	s := ownerStory(t, "b", "c")
	s.is(placement.Owner, 0, event{Kind: placement.Assigned, Now: 1100, Replicas: placement.Replicas{"b", "d"}})
	s.is(placement.SteppingDown, placement.Refuse|placement.Release, event{Kind: placement.Assigned, Now: 1100, Replicas: placement.Replicas{"d", "b"}})
	if s.own.MayServe(1100) {
		t.Error("serves what it gives up")
	}
	s.hint("d")
	s.due(placement.Never)
	s.is(placement.Follower, placement.Follow, event{Kind: placement.Released, Now: 1200})
	s.due(1300) // d has not claimed

	s = ownerStory(t, "b", "c")
	s.is(placement.SteppingDown, placement.Refuse|placement.Release, event{Kind: placement.Assigned, Now: 1100})
	s.is(placement.Lost, placement.Rebuild, event{Kind: placement.Failed, Now: 1200, Sent: 1150})
	s.is(placement.Lost, 0, event{Kind: placement.ObservedRelease, Node: "b", Now: 1210}) // it arrived all the same
	s.is(placement.Lost, 0, event{Kind: placement.Assigned, Replicas: placement.Replicas{"c", "b"}})
	s.is(placement.Follower, placement.Follow, event{Kind: placement.Rebuilt, Now: 1220})
	s.due(1310)

	// The next owner is seen before the answer to the release.
	s = ownerStory(t, "b", "c")
	s.is(placement.SteppingDown, placement.Refuse|placement.Release, event{Kind: placement.Assigned, Now: 1100, Replicas: placement.Replicas{"c", "b"}})
	s.is(placement.SteppingDown, 0, event{Kind: observed, Node: "c", Now: 1110})
	s.is(placement.Follower, placement.Follow, event{Kind: placement.Released, Now: 1200})
	s.due(2110)
	s.hint("c")
}

// TestWonWhatIsNotWanted: a claim that is answered when the partition is another node's is
// released.
func TestWonWhatIsNotWanted(t *testing.T) {
	s := newStory(t, "b", "c")
	s.is(placement.Follower, placement.Follow, event{Kind: placement.Rebuilt, Now: 10})
	s.is(placement.Claiming, placement.Claim, event{Kind: tick, Now: 1000})
	s.is(placement.Claiming, 0, event{Kind: placement.Assigned, Replicas: placement.Replicas{"c"}})
	s.is(placement.SteppingDown, placement.Release, event{Kind: won, Now: 1005, Sent: 1000})
}
