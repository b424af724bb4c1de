package threads_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/store"
	"trunkline/engine/store/rows"
	"trunkline/engine/threadstore"
	"trunkline/handlers/threads"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// TestFirstSeq: read_messages names the first message that is kept, where others have expired, and
// goes on with it.
func TestFirstSeq(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := rows.Open(rows.Config{Memory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		engine := threadstore.New(threadstore.Config{Retention: 90 * 60_000})
		st := store.New(store.Config{Machines: []store.Machine{engine.Machine()}})
		engine.Join(st)
		if err := engine.SetRows(threadstore.StoredRows(db)); err != nil {
			t.Fatal(err)
		}
		engine.Start()
		defer engine.Close()
		s := threads.New(threads.Config{Engine: engine, Await: st.Await})
		caller := &method.Caller{Claims: &token.Claims{Agent: "lead", Workspace: "w", Session: "s", Role: token.Coordinator}}
		call := func(name, doc string, args ...any) string {
			t.Helper()
			out, o := s.Call(nil, caller, method.Lookup([]byte(name)), fmt.Appendf(nil, doc, args...))
			if o.Fault != nil {
				t.Fatal(string(out), o.Fault)
			}
			return string(out)
		}
		made := call("create_thread", `{"workspace_id":"w","title":"t","type":"workflow","participants":["a"]}`)
		_, id, _ := strings.Cut(made, `"thread_id":"`)
		id = id[:strings.IndexByte(id, '"')]
		post := func(body string) {
			call("post_message", `{"thread_id":%q,"schema_version":1,"kind":"chat","body":%q}`, id, body)
		}
		read := func(since int, body, end string) {
			t.Helper()
			got := call("read_messages", `{"thread_id":%q,"since_seq":%d,"limit":1}`, id, since)
			if !strings.Contains(got, body) || !strings.HasSuffix(got, end) {
				t.Errorf("after %d: %s, want %s and %s", since, got, body, end)
			}
		}
		post("one")
		post("two")
		time.Sleep(time.Hour)
		post("three")
		post("four")
		read(0, `"body":"one"`, `],"next_seq":1,"has_more":true}`)
		time.Sleep(75 * time.Minute) // the walk after two hours finds the first two
		for _, since := range []int{0, 1, 2} {
			read(since, `"body":"three"`, `],"next_seq":3,"has_more":true,"first_seq":3}`)
		}
		read(3, `"body":"four"`, `],"next_seq":4,"has_more":false,"first_seq":3}`)
		time.Sleep(2 * time.Hour)
		read(0, `"messages":[`, `],"next_seq":4,"has_more":false,"first_seq":5}`)
		post("five")
		read(0, `"seq":5,`, `],"next_seq":5,"has_more":false,"first_seq":5}`)
	})
}
