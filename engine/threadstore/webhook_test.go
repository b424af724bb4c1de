package threadstore

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"trunkline/engine/store"
	"trunkline/fuzz/kit/memstream"
)

// newHooked returns a rig whose clock is its now, with webhooks.
func newHooked(t testing.TB, cfg Config, list ...Webhook) (r *rig) {
	cfg.Now = func() int64 { return r.now }
	r = newRig(t, cfg)
	r.SetWebhooks(list)
	return r
}

// take returns the next delivery that is due, nil if none is.
func (r *rig) take(name string) *Delivery {
	r.t.Helper()
	if err := r.AwaitDeliveries(context.Background()); err != nil {
		r.t.Fatal(err)
	}
	for {
		d, wait, err := r.TakeDelivery(name)
		if err != nil {
			r.t.Fatal(err)
		}
		if d != nil || wait > 0 {
			return d
		}
	}
}

// wantNext takes a delivery, which has to be that of a message.
func (r *rig) wantNext(name string, id []byte, seq uint64) *Delivery {
	r.t.Helper()
	d := r.take(name)
	if d == nil || d.Thread != string(id) || d.Seq != seq {
		r.t.Fatalf("%+v, want message %d of %s", d, seq, id)
	}
	return d
}

func (r *rig) wantNone(why, name string) {
	r.t.Helper()
	if d := r.take(name); d != nil {
		r.t.Fatalf("%s: %s %d is delivered", why, d.Thread, d.Seq)
	}
}

// pending returns in how many threads a webhook has something to deliver.
func (r *rig) pending(name string) int {
	n, _, _ := r.WebhookBacklog(name)
	return n
}

// event posts an event of a type.
func (r *rig) event(kind Kind, id []byte, metadata string) {
	r.t.Helper()
	if _, ref := r.Post(boss, id, &Post{Kind: kind, Body: []byte("b"), Metadata: []byte(metadata)}, r.now); ref.Code != OK {
		r.t.Fatal(ref)
	}
}

// TestDeliveryOrder: a message of a thread is delivered after the one before; threads do not wait
// for each other, nor webhooks.
func TestDeliveryOrder(t *testing.T) {
	r := newHooked(t, Config{}, Webhook{Name: "h"}, Webhook{Name: "other"})
	a, b := r.create(), r.create()
	r.post(alice, a, "1", "")
	r.post(alice, a, "2", "")
	r.post(alice, b, "1", "")
	first := r.wantNext("h", a, 1)
	second := r.wantNext("h", b, 1)
	r.wantNone("both are under way", "h")
	r.FinishDelivery(first, 204)
	first = r.wantNext("h", a, 2)
	if r.FinishDelivery(second, 500) || r.FinishDelivery(first, 299) {
		t.Error("given up at once")
	}
	r.wantNone("one has failed, one is through", "h")
	r.wantNext("other", a, 1)
	r.now += deliveryBase
	r.FinishDelivery(r.wantNext("h", b, 1), 200)
	r.now += saveEvery
	r.wantNone("all is delivered", "h")
	if n := r.pending("h"); n != 0 || len(r.find(b).pending) != 1 {
		t.Error(n, "threads are pending")
	}
}

// TestDeliveryBody holds the bodies and identifiers to the contract: the message is that of
// read_messages.
func TestDeliveryBody(t *testing.T) {
	r := newHooked(t, Config{}, Webhook{Name: "h"})
	id := r.create()
	p := r.post(alice, id, "hello", "")
	r.sync()
	page, _, _ := r.Read(boss, id, 0, 1, true, nil)
	d := r.wantNext("h", id, 1)
	want := fmt.Sprintf(`{"type":"message.posted","timestamp":"2026-02-17T12:00:00.000Z","data":{"thread_id":%q,"workspace_id":"w","thread_type":"conversation","message":%s}}`, id, page)
	if string(d.Body) != want || d.ID != string(p.AppendID(nil)) || !json.Valid(d.Body) {
		t.Errorf("%s: %s, want %s", d.ID, d.Body, want)
	}
	r.FinishDelivery(d, 200)
	r.now += 1000
	r.Unread(r.now, func(Unread) {})
	d = r.wantNext("h", id, 1)
	want = strings.NewReplacer("message.posted", "thread.unread_dormant", "12:00:00.000Z\",\"data", "12:00:01.000Z\",\"data",
		`"conversation",`, `"conversation","agent_id":"bob",`).Replace(want)
	if string(d.Body) != want || !strings.HasPrefix(d.ID, "unr_") || len(d.ID) != 30 {
		t.Errorf("%s: %s, want %s", d.ID, d.Body, want)
	}
	before := d.ID
	r.FinishDelivery(d, 0)
	r.now += deliveryBase
	if d = r.wantNext("h", id, 1); d.ID != before || string(d.Body) != want {
		t.Errorf("another attempt has %s: %s", d.ID, d.Body)
	}
}

// TestWebhookSelects has what a webhook receives.
func TestWebhookSelects(t *testing.T) {
	f := func(w Webhook, want ...uint64) {
		t.Helper()
		w.Name = "h"
		r := newHooked(t, Config{}, w)
		id := r.create()
		r.post(alice, id, "1", "")
		r.event(Event, id, `{"event_type":"fix_pushed"}`)
		r.event(System, id, `{"a":1,"event\u005ftype":"thread_\u0065scalated"}`)
		r.event(Event, id, "")
		var got []uint64
		for d := r.take("h"); d != nil; d = r.take("h") {
			got = append(got, d.Seq)
			r.FinishDelivery(d, 200)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: %d, want %d", w, got, want)
		}
		if r.now += saveEvery; r.take("h") != nil || r.pending("h") != 0 || r.find(id).pending != nil {
			t.Errorf("%+v: something is left", w)
		}
	}
	f(Webhook{}, 1, 2, 3, 4)
	f(Webhook{Workspace: "w"}, 1, 2, 3, 4)
	f(Webhook{Workspace: "other"})
	f(Webhook{Types: []string{"incident", "conversation"}}, 1, 2, 3, 4)
	f(Webhook{Types: []string{"incident"}})
	f(Webhook{Events: []string{"message"}}, 1)
	f(Webhook{Events: []string{"thread_escalated"}}, 3)
	f(Webhook{Events: []string{"fix_pushed", "message"}}, 1, 2)
	f(Webhook{Events: []string{"unread_dormant"}})
	f(Webhook{Events: []string{""}}, 4)
}

// TestUnreadDeliveries: a report goes behind the messages that it is about, and a later one of the
// same agent takes its place.
func TestUnreadDeliveries(t *testing.T) {
	triggers := DefaultTriggers
	triggers.Unread = TriggerAll
	for _, cfg := range []Config{{}, {Triggers: triggers}} {
		r := newHooked(t, cfg, Webhook{Name: "h"}, Webhook{Name: "reports", Events: []string{"unread_dormant"}})
		report := func() {
			r.now += unreadDelay
			r.Unread(r.now, func(u Unread) {
				if u.Trigger {
					a := &Actor{Workspace: u.Workspace, Agent: SupervisorSender, Rank: Coordinator}
					r.Trigger(a, []byte(u.Thread), &Trigger{Target: u.Agent, Reason: "new_unread_messages"}, r.now)
				}
			})
		}
		id := r.create()
		r.post(alice, id, "1", "")
		report()
		report()
		r.post(alice, id, "2", "")
		report()
		r.trigger(id, "a coordinator does this", "")
		r.FinishDelivery(r.wantNext("h", id, 1), 200)
		r.FinishDelivery(r.wantNext("h", id, 2), 200)
		for _, name := range []string{"h", "reports"} {
			d := r.wantNext(name, id, 2)
			if d.Agent != "bob" {
				t.Errorf("%s: %+v", name, d)
			}
			r.FinishDelivery(d, 200)
			r.wantNone("once", name)
		}
		if r.now += saveEvery; r.take("h") != nil || r.pending("h")+r.pending("reports") != 0 {
			t.Error("something is left")
		}
	}
}

// TestWebhooksAreReplaced: a new webhook begins with what is posted then, one that is removed ends,
// and a filter counts at once.
func TestWebhooksAreReplaced(t *testing.T) {
	r := newHooked(t, Config{})
	id := r.create()
	r.post(alice, id, "1", "")
	r.wantNone("there is no webhook", "h")
	r.SetWebhooks([]Webhook{{Name: "h"}})
	r.post(alice, id, "2", "")
	d := r.wantNext("h", id, 2)
	r.SetWebhooks([]Webhook{{Name: "other"}})
	r.FinishDelivery(d, 500)
	r.now += deliveryBase
	r.wantNone("it was removed", "h")
	r.post(alice, id, "3", "")
	r.SetWebhooks([]Webhook{{Name: "h"}, {Name: "other"}})
	r.wantNone("it is new again", "h")
	r.post(alice, id, "4", "")
	r.wantNext("h", id, 4)
	r.wantNext("other", id, 3)
	if n := len(r.find(id).pending); n != 2 {
		t.Error(n, "backlogs")
	}
	r.sync()
	r.crash(all)
	r.SetWebhooks([]Webhook{{Name: "h", Events: []string{"x"}}, {Name: "other"}})
	r.event(Event, id, `{"event_type":"x"}`)
	r.FinishDelivery(r.wantNext("h", id, 5), 200)
	r.wantNext("other", id, 3)
	r.SetWebhooks(nil)
	if r.webhooks.list.Load() != nil {
		t.Error("there are webhooks")
	}
	r.restart()
	if r.SetWebhooks([]Webhook{{Name: "other"}}); r.take("other") != nil {
		t.Error("a webhook that was removed has a backlog")
	}
}

// TestDeliveriesOverCrashes: what was recorded is not delivered again, all else is, in order; with
// the journal and with a snapshot.
func TestDeliveriesOverCrashes(t *testing.T) {
	for name, again := range map[string]func(*rig){"journal": func(r *rig) { r.sync(); r.crash(all) }, "snapshot": (*rig).restart} {
		t.Run(name, func(t *testing.T) {
			r := newHooked(t, Config{HotBytes: 1, segment: 300}, Webhook{Name: "h"})
			id := r.create()
			for range 4 {
				r.post(alice, id, "m", "")
			}
			r.Unread(r.now, func(Unread) {})
			r.FinishDelivery(r.wantNext("h", id, 1), 200) // it is not recorded
			digest := r.Digest()
			again(r)
			if r.Digest() != digest {
				t.Error("the state differs")
			}
			r.now += saveEvery
			r.FinishDelivery(r.wantNext("h", id, 1), 200)
			again(r)
			r.FinishDelivery(r.wantNext("h", id, 2), 200)
			r.now += deliverFor
			r.FinishDelivery(r.wantNext("h", id, 3), 500)
			digest = r.Digest()
			again(r)
			r.wantNone("the attempt is known", "h")
			r.now += deliverFor - 1
			r.FinishDelivery(r.wantNext("h", id, 3), 500)
			r.now += deliveryMost
			if !r.FinishDelivery(r.wantNext("h", id, 3), 503) {
				t.Error("tried for longer than a day")
			}
			again(r)
			_, dead, _ := r.WebhookBacklog("h")
			if len(dead) != 1 || dead[0].Seq != 3 || dead[0].Status != 503 || dead[0].First != r.now-deliverFor-deliveryMost+1 {
				t.Errorf("%+v", dead)
			}
			if n := r.Resend("h", "", 0); n != 1 {
				t.Error(n, "are sent again")
			}
			again(r)
			r.FinishDelivery(r.wantNext("h", id, 3), 200)
			r.FinishDelivery(r.wantNext("h", id, 4), 200)
			if d := r.wantNext("h", id, 4); d.Agent != "bob" {
				t.Errorf("%+v", d)
			} else {
				r.FinishDelivery(d, 200)
			}
			again(r)
			if _, dead, _ = r.WebhookBacklog("h"); len(dead)+r.pending("h") > 0 {
				t.Error("something is left")
			}
		})
	}
}

// TestDeliveryPauses: pauses are random below a bound that doubles up to an hour.
func TestDeliveryPauses(t *testing.T) {
	r := newHooked(t, Config{}, Webhook{Name: "h"})
	id := r.create()
	r.post(alice, id, "m", "")
	seen := map[int64]bool{}
	for n := range 20 {
		r.FinishDelivery(r.wantNext("h", id, 1), 500)
		b := r.find(id).pending[r.webhooks.find("h")]
		pause, bound := b.Next-r.now, min(int64(deliveryBase)<<n, deliveryMost)
		if pause < 1 || pause > bound || b.due != b.Next || int(b.Attempts) != n+1 {
			t.Errorf("pause %d of at most %d: %+v", pause, bound, b.backlogState)
		}
		seen[pause] = true
		r.now = b.Next - 1
		r.wantNone("before its time", "h")
		r.now++
	}
	if len(seen) < 15 {
		t.Error("pauses are not random")
	}
}

// TestDeliveryClock: a clock that is set neither loses nor holds up a delivery.
func TestDeliveryClock(t *testing.T) {
	r := newHooked(t, Config{}, Webhook{Name: "h"})
	id := r.create()
	r.post(alice, id, "1", "")
	r.FinishDelivery(r.wantNext("h", id, 1), 500)
	r.now -= 7 * deliverFor
	r.wantNone("its pause is not over", "h")
	r.now += deliveryMost
	if d := r.wantNext("h", id, 1); r.FinishDelivery(d, 500) {
		t.Error("given up as the clock was set back")
	}
	if b := r.find(id).pending[r.webhooks.find("h")]; b.First != r.now {
		t.Errorf("%d days are left", (b.First-r.now)/deliverFor)
	}
	r.now += 7 * deliverFor
	r.FinishDelivery(r.wantNext("h", id, 1), 200)
	r.post(alice, id, "2", "")
	r.FinishDelivery(r.wantNext("h", id, 2), 200)
	r.now -= 3600_000
	r.post(alice, id, "3", "")
	r.FinishDelivery(r.wantNext("h", id, 3), 200)
}

// TestDeadLetters holds their number to its limit, and sends some of them again.
func TestDeadLetters(t *testing.T) {
	r := newHooked(t, Config{}, Webhook{Name: "h"})
	id, other := r.create(), r.create()
	r.post(alice, other, "m", "")
	die := func(id []byte, seq uint64) {
		t.Helper()
		r.FinishDelivery(r.wantNext("h", id, seq), 0)
		r.now += deliverFor
		if !r.FinishDelivery(r.wantNext("h", id, seq), 404) {
			t.Fatal("not given up")
		}
	}
	die(other, 1)
	for seq := range uint64(maxDeadLetters - 1) {
		r.post(alice, id, "m", "")
		die(id, seq+1)
	}
	if _, dead, dropped := r.WebhookBacklog("h"); len(dead) != maxDeadLetters || dropped != 0 || dead[0].Thread != string(other) {
		t.Error(len(dead), dropped)
	}
	r.post(alice, id, "m", "")
	die(id, maxDeadLetters)
	check := func(n int) {
		t.Helper()
		if _, dead, dropped := r.WebhookBacklog("h"); len(dead) != n || dropped != 1 || dead[0].Thread != string(id) || dead[0].Seq != 1 {
			t.Error(len(dead), dropped, dead[0])
		}
	}
	check(maxDeadLetters)
	r.restart()
	check(maxDeadLetters)
	for _, c := range []struct {
		name, thread string
		seq          uint64
		want         int
	}{{"none", "", 0, 0}, {"h", "th_none", 0, 0}, {"h", string(other), 0, 0}, {"h", string(id), 5, 1}, {"h", string(id), 5, 0}, {"h", "", 3, 1}} {
		if n := r.Resend(c.name, c.thread, c.seq); n != c.want {
			t.Errorf("%+v: %d", c, n)
		}
	}
	check(maxDeadLetters - 2)
	r.FinishDelivery(r.wantNext("h", id, 3), 500)
	r.wantNone("the other one is behind it", "h")
	r.now += deliverFor
	r.FinishDelivery(r.wantNext("h", id, 3), 500)
	check(maxDeadLetters - 1)
	r.FinishDelivery(r.wantNext("h", id, 5), 200)
	if n := r.Resend("h", string(id), 0); n != maxDeadLetters-1 {
		t.Error(n)
	}
	for seq := range uint64(maxDeadLetters) {
		if seq+1 != 5 {
			r.FinishDelivery(r.wantNext("h", id, seq+1), 200)
		}
	}
	if _, dead, _ := r.WebhookBacklog("h"); len(dead)+r.pending("h") > 0 {
		t.Error("something is left")
	}
}

// TestDeliveriesWhenFull: what cannot be recorded is delivered, and recorded later.
func TestDeliveriesWhenFull(t *testing.T) {
	r := newHooked(t, Config{}, Webhook{Name: "h"})
	id := r.create()
	r.post(alice, id, "1", "")
	r.post(alice, id, "2", "")
	full := true
	r.full = func() bool { return full }
	r.sync()
	r.crash(all)
	r.now += saveEvery
	r.FinishDelivery(r.wantNext("h", id, 1), 500)
	r.now += deliverFor
	if r.FinishDelivery(r.wantNext("h", id, 1), 500) {
		t.Error("given up without a record")
	}
	r.now += deliveryMost
	r.FinishDelivery(r.wantNext("h", id, 1), 200)
	r.FinishDelivery(r.wantNext("h", id, 2), 200)
	r.now += saveEvery
	if r.take("h") != nil || r.pending("h") != 1 {
		t.Error("it has ended without a record")
	}
	full = false
	r.now += saveEvery
	if r.take("h") != nil || r.pending("h") != 0 {
		t.Error("it has not ended")
	}
}

// TestDeliveriesOfLostRows: a letter whose message is gone is dropped, and a row that cannot be
// read is tried again later, without a record.
func TestDeliveriesOfLostRows(t *testing.T) {
	r := newHooked(t, Config{HotBytes: 1, segment: 100}, Webhook{Name: "h"})
	id := r.create()
	r.post(alice, id, "1", "")
	r.post(alice, id, strings.Repeat("x", 200), "")
	b := r.find(id).pending[r.webhooks.find("h")]
	b.add(Letter{Thread: string(id)})
	r.FinishDelivery(r.wantNext("h", id, 1), 200)
	if len(b.Extra) > 0 {
		t.Errorf("%+v", b.Extra)
	}
	r.FinishDelivery(r.wantNext("h", id, 2), 200)
	r.now += saveEvery
	r.wantNone("all is delivered", "h")
	r.post(alice, id, "3", "")
	r.post(alice, id, strings.Repeat("x", 200), "")
	r.sync()
	r.store()
	lost := r.rows.rows
	r.rows.rows = map[string]string{}
	if d, wait, err := r.TakeDelivery("h"); d != nil || wait != 0 || err == nil {
		t.Errorf("%+v, %d, %v", d, wait, err)
	}
	r.rows.rows = lost
	r.wantNone("it was tried just now", "h")
	r.now += deliveryBase
	r.FinishDelivery(r.wantNext("h", id, 3), 200)
}

// TestDeliveriesInMemory: without a journal webhooks work, too.
func TestDeliveriesInMemory(t *testing.T) {
	now := int64(1_771_329_600_000)
	e := New(Config{Now: func() int64 { return now }})
	_ = e.SetRows(newMemRows())
	e.Join(newRig(t, Config{}).memory(e))
	e.SetWebhooks([]Webhook{{Name: "h"}})
	id, _, _ := e.Create(boss, &NewThread{Title: []byte("t"), Participants: [][]byte{[]byte("alice")}}, now)
	for range 2 {
		if _, ref := e.Post(alice, []byte(id), textPost("m", ""), now); ref.Code != OK {
			t.Fatal(ref)
		}
	}
	for seq := range uint64(2) {
		d, _, err := e.TakeDelivery("h")
		if err != nil || d == nil || d.Seq != seq+1 {
			t.Fatal(d, err)
		}
		e.FinishDelivery(d, 200)
	}
}

// TestWebhookModel runs random posts, deliveries, failures, crashes and snapshots. Each message is
// delivered or dead before the next one of its thread is attempted, nothing is left out, and what
// is recorded stays.
func TestWebhookModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newHooked(t, Config{HotBytes: 1, segment: 700})
		type state struct {
			done    []bool // by number
			attempt int    // number of the message that was attempted last
		}
		hooks := []Webhook{{Name: "all"}, {Name: "some", Events: []string{"message"}}}
		r.SetWebhooks(hooks)
		var ids [][]byte
		states := map[string]*state{}
		taken := map[string][]*Delivery{}
		posts := map[string]int{}
		of := func(hook string, id string) *state {
			s := states[hook+id]
			if s == nil {
				s = &state{}
				states[hook+id] = s
			}
			for len(s.done) <= posts[id] {
				s.done = append(s.done, len(s.done) == 0)
			}
			return s
		}
		selected := map[string]bool{} // messages of kind chat
		hook := func() string { return hooks[rapid.IntRange(0, 1).Draw(rt, "hook")].Name }
		take := func(name string) *Delivery {
			d := r.take(name)
			if d == nil {
				return nil
			}
			s := of(name, d.Thread)
			for seq := 1; seq < int(d.Seq); seq++ {
				if !s.done[seq] && (name == "all" || selected[fmt.Sprint(d.Thread, seq)]) {
					rt.Fatalf("%s: message %d of %s before %d", name, d.Seq, d.Thread, seq)
				}
			}
			if name == "some" && !selected[fmt.Sprint(d.Thread, d.Seq)] {
				rt.Fatalf("message %d of %s is not selected", d.Seq, d.Thread)
			}
			taken[name] = append(taken[name], d)
			return d
		}
		finish := func(name string, status int) {
			list := taken[name]
			d := list[0]
			taken[name] = list[1:]
			if dead := r.FinishDelivery(d, status); dead || status/100 == 2 {
				of(name, d.Thread).done[d.Seq] = true
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"create": func(rt *rapid.T) {
				if len(ids) < 3 {
					ids = append(ids, r.create())
				}
			},
			"post": func(rt *rapid.T) {
				if len(ids) == 0 {
					rt.Skip("no thread")
				}
				id := ids[rapid.IntRange(0, len(ids)-1).Draw(rt, "thread")]
				posts[string(id)]++
				if rapid.Bool().Draw(rt, "chat") {
					r.post(alice, id, "m", "")
					selected[fmt.Sprint(string(id), posts[string(id)])] = true
				} else {
					r.event(Event, id, `{"event_type":"e"}`)
				}
			},
			"take": func(rt *rapid.T) { take(hook()) },
			"finish": func(rt *rapid.T) {
				name := hook()
				if len(taken[name]) == 0 {
					rt.Skip("nothing is under way")
				}
				finish(name, rapid.SampledFrom([]int{200, 204, 500, 0, 301, Unattempted}).Draw(rt, "status"))
			},
			"wait": func(rt *rapid.T) {
				r.now += rapid.SampledFrom([]int64{1, saveEvery, deliveryBase, deliveryMost, deliverFor, -deliveryBase, -2 * deliverFor}).Draw(rt, "ms")
			},
			"resend": func(rt *rapid.T) {
				name := hook()
				_, dead, _ := r.WebhookBacklog(name)
				for _, l := range dead {
					of(name, l.Thread).done[l.Seq] = false
				}
				if n := r.Resend(name, "", 0); n != len(dead) {
					rt.Fatalf("%d of %d are sent again", n, len(dead))
				}
				for _, d := range taken[name] { // one may be before what is under way: it was dead before
					for seq := range d.Seq {
						of(name, d.Thread).done[seq] = true
					}
				}
			},
			"store": func(*rapid.T) { r.store() },
			"crash": func(rt *rapid.T) {
				r.sync()
				if rapid.Bool().Draw(rt, "snapshot") {
					r.rows.during = func() {
						for range 3 {
							if len(ids) > 0 && rapid.Bool().Draw(rt, "post meanwhile") {
								id := ids[rand.IntN(len(ids))]
								r.post(alice, id, "m", "")
								posts[string(id)]++
								selected[fmt.Sprint(string(id), posts[string(id)])] = true
							}
						}
					}
					err := r.st.Snapshot()
					if r.rows.during = nil; err != nil {
						rt.Fatalf("%v", err)
					}
					r.sync()
				}
				digest := r.Digest()
				r.crash(all)
				if got := r.Digest(); got != digest {
					rt.Fatalf("digest %x, want %x", got, digest)
				}
				r.SetWebhooks(hooks)
				clear(taken)
			},
		})
		r.sync()
		for _, h := range hooks {
			for len(taken[h.Name]) > 0 {
				finish(h.Name, 200)
			}
			for range 3 {
				r.now += deliveryMost
				for d := take(h.Name); d != nil; d = take(h.Name) {
					finish(h.Name, 200)
				}
			}
			_, dead, _ := r.WebhookBacklog(h.Name)
			isDead := map[string]bool{}
			for _, l := range dead {
				isDead[fmt.Sprint(l.Thread, l.Seq)] = true
			}
			for id, n := range posts {
				for seq := 1; seq <= n; seq++ {
					key := fmt.Sprint(id, seq)
					if (h.Name == "all" || selected[key]) && !of(h.Name, id).done[seq] && !isDead[key] {
						rt.Fatalf("%s: message %d of %s is lost", h.Name, seq, id)
					}
				}
			}
			if n := r.pending(h.Name); n > 0 {
				rt.Fatalf("%d threads are pending", n)
			}
		}
	})
}

// TestWebhooksInCluster: a follower has the webhooks and backlogs of the leader, and delivers the
// rest once it leads.
func TestWebhooksInCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memstream.New()
		a, b := newNode(t, log, "a", 1, Config{}), newNode(t, log, "b", 2, Config{})
		defer func() { a.die(all); b.die(all) }()
		a.own()
		b.start()
		a.SetWebhooks([]Webhook{{Name: "h"}})
		h := &history{t: t}
		h.create(a)
		for range 3 {
			h.post(a, 0, 5, false)
		}
		deliver := func(n *node, seq uint64) {
			t.Helper()
			if err := n.AwaitDeliveries(context.Background()); err != nil {
				t.Fatal(err)
			}
			d, _, err := n.TakeDelivery("h")
			if err != nil || d == nil || d.Seq != seq {
				t.Fatalf("%s: %+v, %v, want message %d", n.name, d, err, seq)
			}
			n.FinishDelivery(d, 200)
		}
		a.now += saveEvery
		deliver(a, 1)
		a.sync()
		if err := a.st.Snapshot(); err != nil {
			t.Fatal(err)
		}
		h.post(a, 0, 5, false)
		a.sync()
		digest := a.Digest()
		a.die(all)
		b.own()
		if b.Digest() != digest {
			t.Error("the follower has another state")
		}
		b.SetWebhooks([]Webhook{{Name: "h"}})
		for seq := range uint64(3) {
			deliver(b, seq+2)
		}
		a.replace()
		b.sync()
		b.die(all)
		a.own() // from a snapshot, without rows
		a.SetWebhooks([]Webhook{{Name: "h"}})
		h.post(a, 0, 5, false)
		a.now += deliveryMost
		deliver(a, 2)
	})
}

// memory returns a store without a journal for an engine.
func (r *rig) memory(e *Engine) *store.Store {
	return store.New(store.Config{Machines: []store.Machine{e.Machine()}, Now: func() int64 { return r.now * 1e6 }})
}
