package threadstore

import "testing"

// TestUnread reports a participant once for each new message of others.
func TestUnread(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	want := func(total int, agents string) {
		t.Helper()
		got := ""
		if n := r.Unread(r.now, func(u Unread) { got += u.Agent + " " }); n != total || got != agents {
			t.Errorf("%d: %q, want %d: %q", n, got, total, agents)
		}
	}
	want(0, "")
	r.post(alice, id, "x", "")
	want(1, "bob ")
	want(1, "")
	r.post(alice, id, "x", "")
	want(1, "bob ")
	r.post(bob, id, "x", "")
	want(2, "alice bob ")
	r.sync()
	r.Ack(alice, id, 3, r.now)
	want(1, "")
	r.beat(bob, Heartbeat{Status: SessionActive})
	want(0, "")
}

// TestUnreadModes has who is woken for unread messages, and who is only reported, once.
func TestUnreadModes(t *testing.T) {
	offline, unmanaged := live, live
	offline.Status, unmanaged.Managed = SessionOffline, false
	for _, c := range []struct {
		name       string
		mode       UnreadMode
		noFallback bool
		session    *Heartbeat
		blocked    bool
		wakes      bool
	}{
		{"off", ReportUnread, false, &live, false, false},
		{"managed", TriggerManaged, false, &live, false, true},
		{"managed and offline", TriggerManaged, false, &offline, false, false},
		{"unmanaged", TriggerManaged, false, &unmanaged, false, false},
		{"none", TriggerManaged, false, nil, false, false},
		{"blocked", TriggerManaged, false, &live, true, false},
		{"all", TriggerAll, false, &live, false, true},
		{"all and none", TriggerAll, false, nil, false, true},
		{"all and blocked", TriggerAll, false, nil, true, false},
		{"all without a fallback", TriggerAll, true, &live, false, true},
		{"all without a fallback and none", TriggerAll, true, nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			triggers := DefaultTriggers
			triggers.Unread, triggers.NoFallback = c.mode, c.noFallback
			r := newRig(t, Config{Triggers: triggers})
			id := r.create()
			if c.session != nil {
				r.beat(alice, *c.session)
			}
			r.post(bob, id, "x", "")
			if c.blocked {
				r.SetStatus(boss, id, &Change{To: Blocked, Reason: "r"}, r.now)
			}
			found := func() (reported, woken int) {
				if n := r.Unread(r.now, func(u Unread) {
					if reported++; u.Trigger {
						woken++
						r.trigger(id, "new_unread_messages", "")
					}
				}); n != 1 {
					t.Error(n, "participants")
				}
				return reported, woken
			}
			wakes := 0
			if c.wakes {
				wakes = 1
			}
			r.now += unreadDelay - 1
			if reported, woken := found(); reported != 1-wakes || woken != 0 {
				t.Errorf("before its time: %d reports, %d jobs", reported, woken)
			}
			r.now++
			if reported, woken := found(); reported != wakes || woken != wakes {
				t.Errorf("at its time: %d reports, %d jobs", reported, woken)
			}
			r.sync()
			r.crash(func(n int) int { return n })
			r.now += unreadDelay
			if reported, _ := found(); reported != 0 {
				t.Error("reported again after a start")
			}
		})
	}
}
