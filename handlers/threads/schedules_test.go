package threads_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"trunkline/engine/store"
	"trunkline/engine/store/rows"
	"trunkline/engine/threadstore"
	"trunkline/fuzz/kit"
	"trunkline/handlers/threads"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// desk is a service over an engine that journals nothing, with a thread of alice and bob.
type desk struct {
	t      *testing.T
	s      *threads.Service
	engine *threadstore.Engine
	now    time.Time // zero: the wall clock
	thread string
}

func newDesk(t *testing.T, now time.Time) *desk {
	d := &desk{t: t, now: now}
	db, err := rows.Open(rows.Config{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	clock := func() time.Time {
		if d.now.IsZero() {
			return time.Now()
		}
		return d.now
	}
	d.engine = threadstore.New(threadstore.Config{Now: func() int64 { return clock().UnixMilli() }})
	st := store.New(store.Config{Machines: []store.Machine{d.engine.Machine()}})
	d.engine.Join(st)
	if err := d.engine.SetRows(threadstore.StoredRows(db)); err != nil {
		t.Fatal(err)
	}
	d.s = threads.New(threads.Config{Engine: d.engine, Await: st.Await, Now: clock})
	d.thread = d.field(d.call("boss", "create_thread", `{"title":"t","type":"workflow","participants":["alice","bob"]}`), "thread_id")
	return d
}

// call runs a method for an agent, of which boss is a coordinator; $TH is the thread. A refusal is
// its code, its message and the details.
func (d *desk) call(agent, name, doc string) string {
	d.t.Helper()
	claims := &token.Claims{Agent: agent, Workspace: "w", Session: "s", ID: "j", Role: token.Participant}
	switch agent {
	case "boss":
		claims.Role = token.Coordinator
	case "auditor":
		claims.Role = token.Auditor
	}
	out, o := d.s.Call(nil, &method.Caller{Claims: claims}, method.Lookup([]byte(name)), []byte(strings.ReplaceAll(doc, "$TH", d.thread)))
	if f := o.Fault; f != nil {
		return fmt.Sprintf("%s: %s %s", f.Condition.Codes().Spec, f.Message, f.Details)
	}
	return string(out)
}

func (d *desk) field(doc, name string) string {
	d.t.Helper()
	_, rest, ok := strings.Cut(doc, `"`+name+`":"`)
	if !ok {
		d.t.Fatalf("%s has no %s", doc, name)
	}
	return rest[:strings.IndexByte(rest, '"')]
}

// ids are shown as their prefixes.
var ids = regexp.MustCompile(`(dly|sch|msg)_[0-9A-Z]{26}`)

func (d *desk) want(agent, name, doc, want string) string {
	d.t.Helper()
	got := d.call(agent, name, doc)
	if shown := ids.ReplaceAllString(got, "${1}_"); shown != want && !(strings.HasSuffix(want, "…") && strings.HasPrefix(shown, strings.TrimSuffix(want, "…"))) {
		d.t.Errorf("%s %s:\n got %s\nwant %s", name, doc, shown, want)
	}
	return got
}

// noon is when tests begin.
var noon = time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC)

// TestDeliverAt has the answers to messages with a deliver_at.
func TestDeliverAt(t *testing.T) {
	d := newDesk(t, noon)
	post := func(more string) string {
		return `{"thread_id":"$TH","schema_version":1,"kind":"chat","body":"x",` + more + `}`
	}
	const deferred = `{"deferred_id":"dly_","deliver_at":"2026-02-17T13:00:00.000Z","thread_status":"active"}`
	first := d.want("alice", "post_message", post(`"deliver_at":"2026-02-17T13:00:00Z","idempotency_key":"k"`), deferred)
	for _, same := range []string{`"2026-02-17T13:00:00Z"`, `1771333200000`, `1771333200000.0`, `"2026-02-17T14:00:00+01:00"`, `"2026-02-17T12:59:59.9999Z"`} {
		if got := d.call("alice", "post_message", post(`"deliver_at":`+same+`,"idempotency_key":"k"`)); got != first {
			t.Errorf("%s again: %s, want %s", same, got, first)
		}
	}
	for _, other := range []string{`"deliver_at":"2026-02-17T13:00:01Z",`, ``} {
		d.want("alice", "post_message", post(other+`"idempotency_key":"k"`), "IDEMPOTENCY_CONFLICT: …")
	}
	d.want("alice", "post_message", post(`"deliver_at":"2026-02-17T11:00:00Z"`), `{"message_id":"msg_","seq":1,"thread_status":"active","created_at":"2026-02-17T12:00:00.000Z"}`)
	d.want("alice", "post_message", post(`"deliver_at":null`), `{"message_id":"msg_","seq":2,…`)
	year := noon.UnixMilli() + method.MaxDelay
	d.want("alice", "post_message", post(fmt.Sprint(`"deliver_at":`, year)), `{"deferred_id":"dly_","deliver_at":"2027-02-18T12:00:00.000Z",…`)
	d.want("alice", "post_message", post(fmt.Sprint(`"deliver_at":`, year+1)),
		"VALIDATION_ERROR: deliver_at is more than 366 days ahead ")
	d.want("eve", "post_message", post(`"deliver_at":"2026-02-17T13:00:00Z"`), "FORBIDDEN: …")
	d.want("auditor", "post_message", post(`"deliver_at":"2026-02-17T13:00:00Z"`), "FORBIDDEN: …")

	cancel := `{"deferred_id":"` + d.field(first, "deferred_id") + `","reason":"r"}`
	d.want("bob", "cancel_message", cancel, "FORBIDDEN: only its author and coordinators may change it ")
	d.want("auditor", "cancel_message", cancel, "FORBIDDEN: …")
	d.want("alice", "cancel_message", cancel, `{"ok":true}`)
	d.want("alice", "cancel_message", cancel, "CONFLICT: deferred_id names no message that waits ")
}

// TestSchedules has the answers of the methods of schedules.
func TestSchedules(t *testing.T) {
	d := newDesk(t, noon)
	create := func(more string) string { return `{"thread_id":"$TH",` + more + `}` }
	const message, trigger = `"message":{"body":"x\u0041"}`, `"trigger":{"target_agent_id":"alice","reason":"r","trigger_prompt":"go\u001b"}`
	got := d.want("alice", "create_schedule", create(`"cron":"0 9 * * *","time_zone":"Europe/Berlin","idempotency_key":"k",`+message),
		`{"schedule_id":"sch_","next_at":"2026-02-18T08:00:00.000Z","created_at":"2026-02-17T12:00:00.000Z"}`)
	id := `{"schedule_id":"` + d.field(got, "schedule_id") + `"`
	if again := d.call("alice", "create_schedule", create(`"cron":"0 9 * * *","time_zone":"Europe/Berlin","idempotency_key":"k",`+message)); again != got {
		t.Errorf("the key again: %s, want %s", again, got)
	}
	d.want("alice", "create_schedule", create(`"cron":"0 9 * * *","idempotency_key":"k",`+message), "IDEMPOTENCY_CONFLICT: …")
	for _, c := range []struct{ agent, more, want string }{
		{"alice", `"every_ms":1000,` + trigger, "FORBIDDEN: triggers and kind system need a coordinator "},
		{"alice", `"every_ms":1000,"message":{"kind":"system","body":"x"}`, "FORBIDDEN: triggers and kind system need a coordinator "},
		{"eve", `"every_ms":1000,` + message, "FORBIDDEN: …"},
		{"auditor", `"every_ms":1000,` + message, "FORBIDDEN: …"},
		{"boss", message, "VALIDATION_ERROR: needs cron or every_ms, message or trigger "},
		{"boss", `"cron":"@daily","every_ms":1000,` + message, "VALIDATION_ERROR: needs cron or every_ms, message or trigger "},
		{"boss", `"every_ms":1000`, "VALIDATION_ERROR: needs cron or every_ms, message or trigger "},
		{"boss", `"every_ms":1000,` + message + "," + trigger, "VALIDATION_ERROR: needs cron or every_ms, message or trigger "},
		{"boss", `"cron":"61 * * * *",` + message, `VALIDATION_ERROR: cron is no expression of five fields or such as @daily: end of range (61) above maximum (59): 61 `},
		{"boss", `"cron":"30 2 31 2 *",` + message, "VALIDATION_ERROR: cron does not fire within eight years …"},
		{"boss", `"cron":"@daily","time_zone":"Mars",` + message, `VALIDATION_ERROR: time_zone is none of the IANA database, such as Europe/Berlin `},
		{"boss", `"every_ms":1000,"trigger":{"target_agent_id":"carol","reason":"r","trigger_prompt":"go"}`, "VALIDATION_ERROR: target_agent_id is not a participant …"},
		{"boss", `"every_ms":1000,"trigger":{"target_agent_id":"alice","reason":"r","trigger_prompt":"\u001b"}`, "VALIDATION_ERROR: trigger.trigger_prompt is empty or too long "},
	} {
		d.want(c.agent, "create_schedule", create(c.more), c.want)
	}
	d.want("boss", "create_schedule", create(`"every_ms":1000,"misfire":"once",`+trigger), `{"schedule_id":"sch_","next_at":"2026-02-17T12:00:01.000Z",…`)
	d.call("bob", "post_message", `{"thread_id":"$TH","schema_version":1,"kind":"chat","body":"`+strings.Repeat("é", 50)+`","deliver_at":"2026-02-17T13:00:00Z"}`)

	d.want("bob", "update_schedule", id+`,"paused":true}`, "FORBIDDEN: …")
	d.want("alice", "update_schedule", id+`,"paused":true}`, `{"ok":true}`)
	const paused = `{"schedule_id":"sch_","cron":"0 9 * * *","time_zone":"Europe/Berlin","text":"xA","paused":true,"created_by":"alice","created_at":"2026-02-17T12:00:00.000Z"}`
	const wakes = `{"schedule_id":"sch_","every_ms":1000,"target_agent_id":"alice","reason":"r","paused":false,"next_at":"2026-02-17T12:00:01.000Z","created_by":"boss","created_at":"2026-02-17T12:00:00.000Z"}`
	d.want("boss", "list_schedules", `{"thread_id":"$TH"}`, `{"schedules":[{"deferred_id":"dly_","text":"`+strings.Repeat("é", 40)+
		`","paused":false,"next_at":"2026-02-17T13:00:00.000Z","created_by":"bob","created_at":"2026-02-17T12:00:00.000Z"},…`)
	list := ids.ReplaceAllString(d.call("alice", "list_schedules", `{"thread_id":"$TH"}`), "${1}_")
	if list != `{"schedules":[`+paused+","+wakes+`]}` && list != `{"schedules":[`+wakes+","+paused+`]}` {
		t.Error(list)
	}
	d.want("eve", "list_schedules", `{"thread_id":"$TH"}`, "FORBIDDEN: …")
	d.want("boss", "update_schedule", id+`,"paused":false}`, `{"ok":true}`)
	d.want("boss", "cancel_message", strings.Replace(id, "schedule_id", "deferred_id", 1)+`}`, "CONFLICT: …")
	d.want("alice", "delete_schedule", id+`}`, `{"ok":true}`)
	d.want("alice", "delete_schedule", id+`}`, "NOT_FOUND: schedule_id names no schedule ")
	d.want("boss", "update_thread_status", `{"thread_id":"$TH","status":"closed","reason":"r"}`, `{"thread_id":…`)
	d.want("alice", "create_schedule", create(`"every_ms":1000,`+message), "CONFLICT: the thread is closed …")
}

// TestFiring: what is due is posted by the engine that was started.
func TestFiring(t *testing.T) {
	d := newDesk(t, time.Time{})
	d.engine.Start()
	defer d.engine.Close()
	d.call("alice", "create_schedule", `{"thread_id":"$TH","every_ms":1000,"message":{"kind":"event","body":"tick","metadata":{"event_type":"x"}}}`)
	d.call("bob", "post_message", fmt.Sprintf(`{"thread_id":"$TH","schema_version":1,"kind":"chat","body":"later","deliver_at":%d}`, time.Now().UnixMilli()+200))
	kit.Until(t, "both", func() bool {
		got := d.call("boss", "read_messages", `{"thread_id":"$TH"}`)
		return strings.Contains(got, `"kind":"event","body":"tick","metadata":{"event_type":"x"},"sender_agent_id":"alice"`) && strings.Contains(got, `"body":"later","sender_agent_id":"bob"`)
	})
}
