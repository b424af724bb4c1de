package threads_test

import (
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"trunkline/engine/journal"
	"trunkline/engine/store"
	"trunkline/engine/store/rows"
	"trunkline/engine/threadstore"
	"trunkline/fuzz/kit/memstore"
	"trunkline/handlers/threads"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// TestAnOwnerConfirmsWhatItReads: while another node may have become the owner of the journal, each
// answer waits for one more record. What was acknowledged is in it all the same.
func TestAnOwnerConfirmsWhatItReads(t *testing.T) {
	db, err := rows.Open(rows.Config{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	engine := threadstore.New(threadstore.Config{})
	st := store.New(store.Config{Machines: []store.Machine{engine.Machine()}})
	engine.Join(st)
	if err := engine.SetRows(threadstore.StoredRows(db)); err != nil {
		t.Fatal(err)
	}
	disk, err := memstore.New(memstore.Options{}).Open()
	if err != nil {
		t.Fatal(err)
	}
	log, err := journal.Open(disk, journal.Config{Mode: journal.Always})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var stale atomic.Bool
	if err := st.Recover(log, store.RecoverOptions{Stale: stale.Load}); err != nil {
		t.Fatal(err)
	}
	s := threads.New(threads.Config{Engine: engine, Await: st.Await})
	caller := &method.Caller{Claims: &token.Claims{Agent: "lead", Workspace: "w", Session: "s", Role: token.Coordinator}}
	call := func(name, doc string) (string, method.Outcome) {
		out, o := s.Call(nil, caller, method.Lookup([]byte(name)), []byte(doc))
		return string(out), o
	}
	done := func(name, doc string) string {
		t.Helper()
		out, o := call(name, doc)
		if o.Fault != nil || s.Await(o.Index) != nil {
			t.Fatal(out, o.Fault)
		}
		return out
	}
	made := done("create_thread", `{"workspace_id":"w","title":"t","type":"workflow","participants":["a"]}`)
	_, id, _ := strings.Cut(made, `"thread_id":"`)
	id = id[:strings.IndexByte(id, '"')]
	done("post_message", `{"thread_id":"`+id+`","schema_version":1,"kind":"chat","body":"hello"}`)

	for _, late := range []bool{false, true} {
		stale.Store(late)
		for since, want := range []string{`"hello"`, `"messages":[],"next_seq":1`} {
			out, o := call("read_messages", `{"thread_id":"`+id+`","since_seq":`+string(rune('0'+since))+`}`)
			if o.Fault != nil || !strings.Contains(out, want) || (o.Index > log.Appended()) != late {
				t.Errorf("late %t: %s %+v, the journal is at %d", late, out, o, log.Appended())
			}
		}
		if _, o := call("get_thread", `{"thread_id":"th_01M84PPGMHJP8FX3Q36ZQ1Q416"}`); o.Fault == nil || (o.Index > log.Appended()) != late {
			t.Errorf("late %t: a thread that is not there: %+v", late, o)
		}
	}
	answers := make(chan string, 2)
	go func() {
		out, _ := s.Audit(caller, url.Values{}, nil)
		answers <- string(out)
		out, _ = s.Jobs(caller, url.Values{"thread_id": {id}}, nil)
		answers <- string(out)
	}()
	for got := 0; got < 2; {
		select {
		case text := <-answers:
			if got == 0 && !strings.Contains(text, "create_thread") {
				t.Error(text)
			}
			got++
		default:
			st.Beat([]byte("owner")) // without it they wait
		}
	}
	_ = log.Close()
	if _, f := s.Audit(caller, url.Values{}, nil); f == nil || f.Condition != method.Unavailable {
		t.Errorf("an audit log that may be old is shown: %+v", f)
	}
}
