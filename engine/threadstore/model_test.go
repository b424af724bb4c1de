package threadstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// modelThread is a thread as a reader of the contract would keep it.
type modelThread struct {
	id      []byte
	status  Status
	bodies  []string
	ids     []string       // of messages, in order
	keys    map[string]int // agent and key -> message
	cursors map[string]int
}

// TestEngineModel runs random methods, snapshots, crashes and evictions against a model.
func TestEngineModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, Config{HotBytes: 1, segment: 700})
		var all []*modelThread
		pick := func() *modelThread {
			if len(all) == 0 {
				rt.Skip("no thread")
			}
			return all[rapid.IntRange(0, len(all)-1).Draw(rt, "thread")]
		}
		actors := []*Actor{boss, alice, bob, eve, {Workspace: "w", Agent: "stranger", Rank: Participant}, {Workspace: "w", Agent: "auditor", Rank: Auditor}}
		n := 0
		member := func(a *Actor, code Code) Code {
			switch {
			case a.Workspace != "w":
				return OtherWorkspace
			case a.Agent == "stranger", a.Agent == "auditor" && code == NotMember:
				return NotMember
			}
			return OK
		}
		rt.Repeat(map[string]func(*rapid.T){
			"create": func(rt *rapid.T) {
				if len(all) < 4 {
					all = append(all, &modelThread{id: r.create(), keys: map[string]int{}, cursors: map[string]int{}})
				}
			},
			"post": func(rt *rapid.T) {
				m, a := pick(), rapid.SampledFrom(actors).Draw(rt, "actor")
				key := rapid.SampledFrom([]string{"", "k1", "k2", "k3"}).Draw(rt, "key")
				n++
				body := fmt.Sprint("b", n)
				known := m.keys[a.Agent+"/"+key]
				again := key != "" && known > 0 && rapid.Bool().Draw(rt, "again")
				if again {
					body = m.bodies[known-1]
				}
				p, replies := textPost(body, key), true
				switch i := rapid.IntRange(-3, len(m.ids)).Draw(rt, "reply"); {
				case i >= 0 && i < len(m.ids):
					p.InReplyTo = []byte(m.ids[i])
				case i == len(m.ids):
					p.InReplyTo, replies = []byte("msg_01KHNQHEG0KH6YV2NM6PRZNGBK"), false
				}
				got, ref := r.Post(a, m.id, p, r.now)
				want := member(a, NotMember)
				switch {
				case want != OK:
				case !replies:
					want = NoMessage
				case key != "" && known > 0 && !again:
					want = KeyReused
				case again:
					if !got.Replay || got.Seq != uint64(known) {
						rt.Fatalf("replay %+v, want message %d", got, known)
					}
				case m.status == Closed:
					want = ThreadClosed
				default:
					m.bodies, m.ids = append(m.bodies, body), append(m.ids, string(got.AppendID(nil)))
					if key != "" {
						m.keys[a.Agent+"/"+key] = len(m.bodies)
					}
					if got.Replay || got.Seq != uint64(len(m.bodies)) || got.Status != m.status {
						rt.Fatalf("posted %+v, want message %d", got, len(m.bodies))
					}
				}
				if ref.Code != want {
					rt.Fatalf("post by %s: code %d, want %d", a.Agent, ref.Code, want)
				}
			},
			"ack": func(rt *rapid.T) {
				r.sync()
				m, a := pick(), rapid.SampledFrom([]*Actor{alice, bob, boss}).Draw(rt, "actor")
				seq := rapid.IntRange(0, len(m.bodies)+1).Draw(rt, "seq")
				_, ref := r.Ack(a, m.id, uint64(seq), r.now)
				at, want := m.cursors[a.Agent], OK
				switch {
				case seq > len(m.bodies):
					want = AckBeyond
				case seq < at:
					want = AckBehind
				default:
					m.cursors[a.Agent] = seq
				}
				if ref.Code != want {
					rt.Fatalf("ack %d at %d of %d: code %d, want %d", seq, at, len(m.bodies), ref.Code, want)
				}
			},
			"status": func(rt *rapid.T) {
				m, to := pick(), Status(rapid.IntRange(0, 3).Draw(rt, "to"))
				reason := rapid.SampledFrom([]string{"because", "human_override:yes", "human_override: "}).Draw(rt, "reason")
				v, _, ref := r.SetStatus(boss, m.id, &Change{To: to, Reason: reason}, r.now)
				// Rows are from, columns are to: . allowed, x never, o with an override.
				rule := []string{"....", "..xo", "xx..", "xxx."}[m.status][to]
				allowed := rule == '.' || rule == 'o' && reason == "human_override:yes"
				if allowed != (ref.Code == OK) {
					rt.Fatalf("%s to %s: %+v", m.status, to, ref)
				}
				if allowed {
					m.status = to
					if v.Status != to {
						rt.Fatalf("status %s, want %s", v.Status, to)
					}
				}
			},
			"snapshot": func(rt *rapid.T) {
				m := pick()
				r.rows.during = func() { // the snapshot has it, and its record is behind the snapshot's index
					if m.status != Closed {
						p := r.post(boss, m.id, "during", "")
						m.bodies, m.ids = append(m.bodies, "during"), append(m.ids, string(p.AppendID(nil)))
						r.rows.during = nil
					}
				}
				if err := r.st.Snapshot(); err != nil {
					rt.Fatal(err)
				}
			},
			"time":  func(rt *rapid.T) { r.now += int64(rapid.IntRange(-5000, 5000).Draw(rt, "ms")) },
			"store": func(*rapid.T) { r.sync(); r.store() },
			"crash": func(rt *rapid.T) {
				r.sync()
				before := r.Digest()
				r.crash(func(n int) int { return rapid.IntRange(0, n).Draw(rt, "rows") })
				if after := r.Digest(); after != before {
					rt.Fatalf("digest %x, was %x", after, before)
				}
			},
			"": func(rt *rapid.T) {
				r.sync()
				r.now++
				for _, m := range all {
					if got := r.bodies(m.id); !slices.Equal(got, m.bodies) {
						rt.Fatalf("messages %v, want %v", got, m.bodies)
					}
					if !slices.IsSorted(m.ids) {
						rt.Fatalf("identifiers are not in order: %v", m.ids)
					}
					v, _, ref := r.Get(alice, m.id)
					if ref.Code != OK || v.Status != m.status || strings.Join(v.Participants, ",") != "alice,bob" {
						rt.Fatalf("thread %+v %+v, want status %s", v, ref, m.status)
					}
				}
			},
		})
		_ = r.log.Close()
	})
}
