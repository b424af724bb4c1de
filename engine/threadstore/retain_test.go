package threadstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const day = 24 * 3600_000

// retainAll takes as many steps as a walk over all threads may need.
func (r *rig) retainAll() {
	r.t.Helper()
	r.sync()
	r.store()
	r.retention.began, r.retention.last = 0, r.now
	for first := true; first || r.retention.next > 0; first = false {
		if err := r.retain(r.now); err != nil {
			r.t.Fatal(err)
		}
	}
}

// TestRetention: messages leave when they are older than the setting, and not before; what refers
// to them lives with it.
func TestRetention(t *testing.T) {
	for _, how := range []string{"running", "crash", "snapshot", "crash without rows"} {
		t.Run(how, func(t *testing.T) {
			r := newRig(t, Config{Retention: 2 * day})
			id := r.create()
			var old Posted
			for i := range 5 {
				old = r.post(alice, id, fmt.Sprint("old", i), fmt.Sprint("k", i))
				r.now++
			}
			last := r.now - 1 // of the fifth
			r.now = last + day
			r.post(alice, id, "new0", "")
			r.now = last + 2*day
			r.retainAll()
			if got := r.page(id, 0); len(got) != 2 || got[0] != "5 old4" {
				t.Fatal("at the limit", got)
			}
			r.now++
			r.retainAll()
			r.sync()
			before := r.Digest()
			switch how {
			case "crash":
				r.crash(all)
			case "crash without rows":
				r.crash(func(int) int { return 0 })
			case "snapshot":
				r.restart()
			}
			if r.Digest() != before {
				t.Error("the state is another one")
			}
			for _, since := range []uint64{0, 3, 5} {
				if got := r.page(id, since); fmt.Sprint(got) != "[6 new0]" {
					t.Errorf("after %d: %v", since, got)
				}
			}
			_, p, _ := r.Read(boss, id, 0, 10, true, nil)
			if p.First != 6 || p.Next != 6 {
				t.Errorf("%+v", p)
			}
			reply := textPost("reply", "")
			reply.InReplyTo = old.AppendID(nil)
			if _, ref := r.Post(alice, id, reply, r.now); ref.Code != NoMessage {
				t.Errorf("a reply to what was cut: %+v", ref)
			}
			if p := r.post(alice, id, "old4", "k4"); p.Replay || p.Seq != 7 {
				t.Errorf("the key of what was cut: %+v", p)
			}
			if _, ref := r.Ack(bob, id, 3, r.now); ref.Code != OK {
				t.Errorf("a cursor at what was cut: %+v", ref)
			}
			r.sync()
			if s, ref := r.Summarize(boss, id, 100); ref.Code != OK || !strings.HasPrefix(s.Text, "Last 2 of 7 messages:") {
				t.Errorf("%+v %+v", s, ref)
			}
			r.now += 3 * day
			r.retainAll()
			if _, p, _ := r.Read(boss, id, 0, 10, true, nil); p.First != 8 || p.Next != 7 || p.More {
				t.Errorf("of nothing: %+v", p)
			}
			if n := r.Unread(r.now, func(Unread) {}); n != 0 {
				t.Errorf("%d have unread messages that are gone", n)
			}
			if p := r.post(bob, id, "x", ""); p.Seq != 8 {
				t.Errorf("a number is used again: %+v", p)
			}
			if _, err := CheckRows(r.rows, func(err error) { t.Error(err) }); err != nil {
				t.Error(err)
			}
		})
	}
}

// page returns numbers and bodies of a page.
func (r *rig) page(id []byte, since uint64) (all []string) {
	r.t.Helper()
	r.sync()
	page, _, ref := r.Read(boss, id, since, 200, true, []byte("["))
	var list []struct {
		Seq  int
		Body string
	}
	if err := json.Unmarshal(append(page, ']'), &list); err != nil || ref.Code != OK {
		r.t.Fatal(err, ref)
	}
	for _, m := range list {
		all = append(all, fmt.Sprint(m.Seq, " ", m.Body))
	}
	return all
}

// TestRetentionClock: a clock that jumps ahead cuts nothing for a day, one that jumps back delays
// nothing.
func TestRetentionClock(t *testing.T) {
	var r retention
	f := func(now int64, want bool) {
		t.Helper()
		if got := r.trusts(now); got != want {
			t.Errorf("at %d: %t", now, got)
		}
	}
	now := int64(1_771_329_600_000)
	f(now, true)
	f(now+clockJump, true)
	f(now+2*clockJump+1, false)
	f(now+2*clockJump+clockHold/2, false) // another jump
	f(now+1000, true)                     // back
	f(now+1000+clockJump+1, false)
	for at := now + 1000 + clockJump + 1; at < now+1000+clockJump+1+clockHold; at += clockJump {
		f(at, false)
	}
	f(now+1000+clockJump+1+clockHold, true)
	f(now-365*day, true)
}

// TestRetentionIsBounded: one step looks at so many threads, and cuts so many messages of one.
func TestRetentionIsBounded(t *testing.T) {
	r := newRig(t, Config{Retention: day})
	for range retainThreads {
		r.create()
	}
	id := r.create()
	for range retainMessages + 1 {
		r.post(alice, id, "x", "")
	}
	r.sync()
	r.store()
	r.now += 2 * day
	step := func(next, gone uint64) {
		t.Helper()
		if err := r.retain(r.now); err != nil || r.retention.next != next || r.find(id).gone != gone {
			t.Errorf("at %d, %d are gone (%v), want %d and %d", r.retention.next, r.find(id).gone, err, next, gone)
		}
	}
	step(retainThreads, 0)
	step(retainThreads, retainMessages)
	step(0, retainMessages+1)
	r.now += retainEvery - 1
	step(0, retainMessages+1)
	r.post(alice, id, "x", "")
	r.sync()
	r.store()
	r.retention.last, r.now = r.now+2*day, r.now+2*day
	step(retainThreads, retainMessages+1)
	step(0, retainMessages+2)
}

// TestExport: an export has everything, in memory and in rows, and one that was cut off is seen.
func TestExport(t *testing.T) {
	for _, c := range []struct {
		n    int
		size int
	}{{0, 1}, {3, 1}, {runMessages + 1, 1}, {9, exportBytes / 4}} {
		r := newRig(t, Config{HotBytes: 1, segment: 1000})
		id := r.create()
		for i := range c.n {
			r.post(alice, id, fmt.Sprintf("%0*d", c.size, i+1), "")
			if r.sync(); i == c.n/2 {
				r.store()
			}
		}
		if c.n > 1 {
			r.Ack(bob, id, 2, r.now)
		}
		var out bytes.Buffer
		writes := 0
		if err := r.Export(t.Context(), id, func(lines []byte) error { writes++; out.Write(lines); return nil }); err != nil {
			t.Fatal(err)
		}
		if size := out.Len(); writes > 2+size/exportBytes+c.n/runMessages+2 {
			t.Errorf("%d writes for %d bytes", writes, size)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) != c.n+2 || lines[len(lines)-1] != fmt.Sprintf(`{"end":true,"messages":%d}`, c.n) {
			t.Fatalf("%d lines for %d messages, the last one is %s", len(lines), c.n, lines[len(lines)-1])
		}
		var head struct {
			Thread string `json:"thread_id"`
			First  int    `json:"first_seq"`
			Latest int    `json:"latest_seq"`
			Status string
			Cursor []struct {
				Agent string `json:"agent_id"`
				Last  int    `json:"last_read_seq"`
			} `json:"cursors"`
		}
		if err := json.Unmarshal([]byte(lines[0]), &head); err != nil || head.Thread != string(id) || head.Latest != c.n || head.First != 1 || head.Status != "active" ||
			c.n > 1 && (len(head.Cursor) != 1 || head.Cursor[0].Agent != "bob" || head.Cursor[0].Last != 2) {
			t.Errorf("%s: %v", lines[0], err)
		}
		for i, line := range lines[1 : len(lines)-1] {
			if !json.Valid([]byte(line)) || !strings.Contains(line, fmt.Sprintf(`"seq":%d,`, i+1)) {
				t.Fatalf("line %d: %.200s", i, line)
			}
		}
		failed := errors.New("the reader is gone")
		if err := r.Export(t.Context(), id, func([]byte) error { return failed }); !errors.Is(err, failed) {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Export(ctx, id, func([]byte) error { return nil }); c.n > 0 && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if r.Export(t.Context(), []byte("th_none"), nil) == nil {
			t.Error("a thread that does not exist is exported")
		}
		_ = r.log.Close()
	}
}

// TestExportBesideACut: what is cut while an export goes on is missing at its beginning alone.
func TestExportBesideACut(t *testing.T) {
	r := newRig(t, Config{Retention: day, HotBytes: 1, segment: 1000})
	id := r.create()
	for range 9 {
		r.post(alice, id, strings.Repeat("x", exportBytes/3), "")
	}
	r.sync()
	r.store()
	r.now += 2 * day
	r.post(alice, id, "new", "")
	lines := 0
	err := r.Export(t.Context(), id, func(b []byte) error {
		if lines += bytes.Count(b, []byte("\n")); lines < 9 {
			r.retainAll()
		}
		return nil
	})
	if err != nil || lines < 3 || lines > 8 {
		t.Errorf("%d lines: %v", lines, err)
	}
}

// TestRetentionModel runs posts, cuts, erasures, snapshots, crashes and evictions against a simple
// model.
func TestRetentionModel(t *testing.T) {
	type msg struct {
		at           int64
		sender, text string
	}
	type model struct {
		id     []byte
		msgs   []msg
		gone   int
		closed bool
	}
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, Config{HotBytes: 1, segment: 700, Retention: 5 * day, KeyWindow: 1})
		var all []*model
		ghost := (&erasure{Workspace: "w", Agent: "alice"}).name("alice")
		pick := func() *model {
			if len(all) == 0 {
				rt.Skip("no thread")
			}
			return all[rapid.IntRange(0, len(all)-1).Draw(rt, "thread")]
		}
		n := 0
		rt.Repeat(map[string]func(*rapid.T){
			"create": func(*rapid.T) {
				if len(all) < 4 {
					all = append(all, &model{id: r.create()})
				}
			},
			"post": func(rt *rapid.T) {
				m, a := pick(), rapid.SampledFrom([]*Actor{alice, bob, boss}).Draw(rt, "actor")
				for range rapid.IntRange(1, 5).Draw(rt, "posts") {
					n++
					text := fmt.Sprint("text", n)
					if p, ref := r.Post(a, m.id, textPost(text, ""), r.now); m.closed != (ref.Code == ThreadClosed) || !m.closed && p.Seq != uint64(len(m.msgs)+1) {
						rt.Fatalf("%+v %+v after %d", p, ref, len(m.msgs))
					}
					if !m.closed {
						m.msgs = append(m.msgs, msg{r.now, a.Agent, text})
					}
				}
			},
			"ack": func(*rapid.T) { m := pick(); r.sync(); r.Ack(alice, m.id, uint64(len(m.msgs)), r.now) },
			"job": func(*rapid.T) {
				r.Trigger(alice, pick().id, &Trigger{Target: "bob", Reason: "text of a job", Prompt: "text of a prompt"}, r.now)
			},
			"time": func(rt *rapid.T) { r.now += int64(rapid.IntRange(0, 2*day).Draw(rt, "ms")) },
			"retain": func(*rapid.T) {
				r.retainAll()
				for _, m := range all {
					for m.gone < len(m.msgs) && m.msgs[m.gone].at < r.now-5*day {
						m.gone++
					}
				}
			},
			"erase thread": func(*rapid.T) {
				m := pick()
				if _, ref := r.EraseThread(m.id, "because", r.now); ref.Code != OK {
					rt.Fatalf("%+v", ref)
				}
				for i := range m.msgs {
					m.msgs[i].text = erasedText
				}
				m.closed = true
			},
			"erase agent": func(*rapid.T) {
				if _, ref := r.EraseAgent("w", "alice", "because", r.now); ref.Code != OK {
					rt.Fatalf("%+v", ref)
				}
				for _, m := range all {
					for i := range m.msgs {
						if m.msgs[i].sender == "alice" {
							m.msgs[i].text, m.msgs[i].sender = erasedText, ghost
						}
					}
				}
			},
			"purge": func(*rapid.T) {
				if err := r.purge(r.now); err != nil {
					rt.Fatal(err)
				}
			},
			"snapshot": func(*rapid.T) {
				if err := r.st.Snapshot(); err != nil {
					rt.Fatal(err)
				}
			},
			"store": func(*rapid.T) { r.sync(); r.store() },
			"crash": func(rt *rapid.T) {
				r.sync()
				before := r.Digest()
				r.crash(func(n int) int { return rapid.IntRange(0, n).Draw(rt, "rows") })
				if r.Digest() != before {
					rt.Fatal("another digest")
				}
			},
			"": func(rt *rapid.T) {
				for i, m := range all {
					want := []string{}
					for k, msg := range m.msgs[m.gone:] {
						want = append(want, fmt.Sprintln(m.gone+k+1, msg.sender, msg.text, msg.text == erasedText))
					}
					if got := r.shown(m.id); !slices.Equal(got, want) {
						rt.Fatalf("thread %d: %q, want %q", i, got, want)
					}
					if v, _, _ := r.Get(boss, m.id); (v.Status == Closed) != m.closed || (v.Title == erasedText) != m.closed {
						rt.Fatalf("%+v", v)
					}
				}
				if _, err := CheckRows(r.rows, func(err error) { rt.Fatal(err) }); err != nil {
					rt.Fatal(err)
				}
			},
		})
		_ = r.log.Close()
	})
}

// shown returns what readers see of the messages of a thread.
func (r *rig) shown(id []byte) (all []string) {
	r.t.Helper()
	r.sync()
	all = []string{}
	for since, more := uint64(0), true; more; {
		page, p, ref := r.Read(boss, id, since, 3, true, []byte("["))
		var list []struct {
			Seq    int
			Body   string
			Sender string `json:"sender_agent_id"`
			Erased bool
		}
		if err := json.Unmarshal(append(page, ']'), &list); err != nil || ref.Code != OK {
			r.t.Fatal(err, ref)
		}
		for _, m := range list {
			all = append(all, fmt.Sprintln(m.Seq, m.Sender, m.Body, m.Erased))
		}
		since, more = p.Next, p.More
	}
	return all
}
