package threadstore

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// listedThread is a thread as the model of TestThreadsModel has it.
type listedThread struct {
	id           string
	number       int
	updated      int64
	status       Status
	participants []string
	latest, read uint64            // read: the cursor of alice
	lastBy       map[string]uint64 // the last message of each sender
}

// pages returns what all pages of a list show.
func (r *rig) pages(a *Actor, f Filter) (ids []string) {
	r.t.Helper()
	for n := 0; ; n++ {
		list, next, _ := r.Threads(a, &f)
		if len(list) > f.Limit || n > 1000 {
			r.t.Fatalf("a page of %d threads, limit %d; %d pages", len(list), f.Limit, n)
		}
		for i := range list {
			ids = append(ids, list[i].ID)
		}
		if next.Number == 0 {
			return ids
		}
		f.After = next
	}
}

// TestThreadsModel lists threads in both orders, with all filters and random pages, between posts,
// acknowledgements, changes of participants and status, and restarts.
func TestThreadsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, Config{})
		var all []*listedThread
		pick := func() *listedThread {
			if len(all) == 0 {
				rt.Skip("no thread")
			}
			return all[rapid.IntRange(0, len(all)-1).Draw(rt, "thread")]
		}
		rt.Repeat(map[string]func(*rapid.T){
			"create": func(rt *rapid.T) {
				if r.now++; len(all) < 12 {
					all = append(all, &listedThread{id: string(r.create()), number: len(all), updated: r.now, participants: []string{"alice", "bob"}, lastBy: map[string]uint64{}})
				}
			},
			"post": func(rt *rapid.T) {
				m := pick()
				r.now++
				if m.status == Closed {
					return
				}
				a := rapid.SampledFrom([]*Actor{alice, boss}).Draw(rt, "sender")
				if !slices.Contains(m.participants, "alice") {
					a = boss
				}
				r.post(a, []byte(m.id), "x", "")
				m.latest++
				m.updated, m.lastBy[a.Agent] = r.now, m.latest
			},
			"ack": func(rt *rapid.T) {
				if m := pick(); slices.Contains(m.participants, "alice") {
					r.sync()
					if _, ref := r.Ack(alice, []byte(m.id), m.latest, r.now); ref.Code != OK {
						rt.Fatal(ref)
					}
					m.read = m.latest
				}
			},
			"close": func(rt *rapid.T) {
				m := pick()
				if r.now++; m.status != Closed {
					if _, _, ref := r.SetStatus(boss, []byte(m.id), &Change{To: Closed, Reason: "x"}, r.now); ref.Code != OK {
						rt.Fatal(ref)
					}
					m.status, m.updated = Closed, r.now
				}
			},
			"participants": func(rt *rapid.T) {
				m := pick()
				if r.now++; m.status == Closed {
					return
				}
				agent := rapid.SampledFrom([]string{"alice", "carol"}).Draw(rt, "agent")
				c := &Membership{Reason: "x", Add: [][]byte{[]byte(agent)}}
				if i := slices.Index(m.participants, agent); i >= 0 {
					c.Add, c.Remove = nil, c.Add
					m.participants = slices.Delete(m.participants, i, i+1)
					if agent == "alice" {
						m.read = 0
					}
				} else {
					m.participants = append(m.participants, agent)
				}
				if v, _, ref := r.SetParticipants(boss, []byte(m.id), c, r.now); ref.Code != OK || !slices.Equal(v.Participants, m.participants) {
					rt.Fatal(v.Participants, m.participants, ref)
				}
				m.updated = r.now
			},
			"restart": func(*rapid.T) {
				if rapid.Bool().Draw(rt, "snapshot") {
					if err := r.st.Snapshot(); err != nil {
						rt.Fatal(err)
					}
				}
				r.sync()
				r.crash(func(n int) int { return n })
			},
			"": func(rt *rapid.T) {
				f := Filter{Status: rapid.SampledFrom([]int{-1, int(Active), int(Closed)}).Draw(rt, "status"), Type: -1,
					Participant: rapid.SampledFrom([]string{"", "alice", "carol"}).Draw(rt, "participant"),
					Unread:      rapid.Bool().Draw(rt, "unread"), Created: rapid.Bool().Draw(rt, "created"), Limit: rapid.IntRange(1, 13).Draw(rt, "limit")}
				a := rapid.SampledFrom([]*Actor{boss, alice, {Workspace: "w", Agent: "auditor", Rank: Auditor}}).Draw(rt, "actor")
				var want []*listedThread
				for _, m := range all {
					member := slices.Contains(m.participants, a.Agent)
					switch {
					case a.Rank == Participant && !member, f.Participant != "" && !slices.Contains(m.participants, f.Participant),
						f.Status >= 0 && m.status != Status(f.Status), f.Unread && !m.unread(a):
					default:
						want = append(want, m)
					}
				}
				slices.SortFunc(want, func(a, b *listedThread) int {
					if f.Created {
						return b.number - a.number
					}
					return cmp.Or(cmp.Compare(b.updated, a.updated), b.number-a.number)
				})
				var ids []string
				for _, m := range want {
					ids = append(ids, m.id)
				}
				if got := r.pages(a, f); !slices.Equal(got, ids) {
					rt.Fatalf("%+v of %s: %v, want %v", f, a.Agent, got, ids)
				}
			},
		})
	})
}

// unread reports whether there are messages of others behind the cursor of an actor.
func (m *listedThread) unread(a *Actor) bool {
	read := uint64(0)
	if a == alice {
		read = m.read
	}
	for agent, seq := range m.lastBy {
		if agent != a.Agent && seq > read {
			return true
		}
	}
	return false
}

// TestThreadsScan: a page ends after listScan threads, however few of them a filter selects, and
// the next one goes on.
func TestThreadsScan(t *testing.T) {
	r := newRig(t, Config{})
	var id []byte
	for i := range listScan + 10 {
		if made := r.create(); i == 3 {
			id = made
		}
	}
	if _, _, ref := r.SetStatus(boss, id, &Change{To: Closed, Reason: "x"}, r.now-1); ref.Code != OK {
		t.Fatal(ref)
	}
	f := Filter{Status: int(Closed), Type: -1, Created: true, Limit: 50}
	list, next, _ := r.Threads(boss, &f)
	if len(list) != 0 || next.Number == 0 {
		t.Fatalf("%d threads, next %+v, want an empty page with a cursor", len(list), next)
	}
	f.After = next
	if list, next, _ = r.Threads(boss, &f); len(list) != 1 || list[0].ID != string(id) || next.Number != 0 {
		t.Fatalf("%d threads, next %+v, want the one that is closed", len(list), next)
	}
	f = Filter{Status: -1, Type: -1, Limit: 200}
	if got := r.pages(alice, f); len(got) != listScan+10 {
		t.Errorf("%d threads of an agent with more than are sorted, want %d", len(got), listScan+10)
	}
}

// TestParticipantsAreBounded: a thread has 1 to maxParticipants of them; a removed one loses cursor
// and jobs, and a restart shows the same.
func TestParticipantsAreBounded(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	names := func(from, to int) (list [][]byte) {
		for i := from; i < to; i++ {
			list = append(list, []byte(fmt.Sprint("agent", i)))
		}
		return list
	}
	change := func(add, remove [][]byte) Refusal {
		_, _, ref := r.SetParticipants(boss, id, &Membership{Add: add, Remove: remove, Reason: "x"}, r.now)
		return ref
	}
	if ref := change(names(2, maxParticipants+1), nil); ref.Code != BadCount || ref.N != maxParticipants+1 {
		t.Errorf("one too many: %+v", ref)
	}
	if ref := change(names(2, maxParticipants), nil); ref.Code != OK {
		t.Errorf("as many as may be: %+v", ref)
	}
	if ref := change(nil, append(names(2, maxParticipants), []byte("alice"), []byte("bob"))); ref.Code != BadCount || ref.N != 0 {
		t.Errorf("none left: %+v", ref)
	}
	r.post(boss, id, "x", "k")
	r.sync()
	if _, ref := r.Ack(bob, id, 1, r.now); ref.Code != OK {
		t.Fatal(ref)
	}
	if _, _, ref := r.Trigger(boss, id, &Trigger{Target: "bob", Reason: "x", Prompt: "x"}, r.now); ref.Code != OK {
		t.Fatal(ref)
	}
	if ref := change(nil, append(names(2, maxParticipants), []byte("bob"))); ref.Code != OK {
		t.Fatal(ref)
	}
	for range 2 {
		r.sync()
		if v, _, _ := r.Get(boss, id); !slices.Equal(v.Participants, []string{"alice"}) {
			t.Errorf("participants %v", v.Participants)
		}
		jobs, ref := r.Jobs(boss, id, 10)
		if ref.Code != OK || len(jobs) != 1 || jobs[0].Code != codeCancelled || !jobs[0].Final {
			t.Errorf("jobs %+v %+v", jobs, ref)
		}
		if got := r.pages(bob, Filter{Status: -1, Type: -1, Limit: 10}); got != nil {
			t.Errorf("a removed participant lists %v", got)
		}
		if c := r.find(id).cursors["bob"]; c != nil {
			t.Errorf("a removed participant has the cursor %+v", c)
		}
		r.crash(func(n int) int { return n })
	}
	if _, _, ref := r.SetParticipants(alice, []byte("th_none"), &Membership{}, r.now); ref.Code != NoThread {
		t.Error(ref)
	}
}
