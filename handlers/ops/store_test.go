package ops

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
)

func TestReadyTellsOfTheRecovery(t *testing.T) {
	c := newConfig(t)
	var r *Recovery
	c.Recovery = func() *Recovery { return r }
	f := func(status int, want string) {
		t.Helper()
		code, body, _ := ask(c, "GET", "/readyz")
		if code != status || strings.TrimSpace(body) != want {
			t.Errorf("readyz = %d %s, want %d %s", code, body, status, want)
		}
	}
	f(200, `{"ready":true,"reasons":[]}`)
	c.Ready.Hold("recovering")
	f(503, `{"ready":false,"reasons":["recovering"]}`)
	r = &Recovery{Phase: "open"}
	f(503, `{"ready":false,"reasons":["recovering"],"recovery":{"phase":"open","done":0,"total":0,"percent":0,"eta_secs":null}}`)
	eta := 3.2
	r = &Recovery{Phase: "log", Done: 1, Total: 8, Percent: 12.5, ETASecs: &eta}
	f(503, `{"ready":false,"reasons":["recovering"],"recovery":{"phase":"log","done":1,"total":8,"percent":12.5,"eta_secs":3.2}}`)
}

func TestConditionsComeAndGo(t *testing.T) {
	var r Readiness
	var full atomic.Bool
	f := func(want string) {
		t.Helper()
		if got := strings.Join(r.Reasons(), ","); got != want {
			t.Errorf("reasons %q, want %q", got, want)
		}
	}
	r.When("storage_full", full.Load)
	f("")
	full.Store(true)
	f("storage_full")
	r.Hold("draining")
	f("draining,storage_full")
	full.Store(false)
	f("draining")
	// A condition may look at the list itself without a deadlock.
	r.When("self", func() bool { r.Release("draining"); return false })
	f("draining")
	f("")
}

func TestStoreIsShown(t *testing.T) {
	c := newConfig(t)
	want := Store{Mode: "always", Dir: "d", Warnings: []string{"storage_full"},
		Journal: &Journal{Epoch: 2, Appended: 9, Durable: 8, LastSnapshot: &Snapshot{Index: 5, AgeSecs: 1.5}}, Disk: &Disk{UsedBytes: 1, FreeBytes: 2, Full: true}}
	c.Store = func() Store { return want }
	code, body, _ := ask(c, "GET", "/store")
	var got Store
	if err := json.Unmarshal([]byte(body), &got); code != 200 || err != nil {
		t.Fatalf("store = %d %s, %v", code, body, err)
	}
	if got.Journal == nil || got.Journal.LastSnapshot == nil || *got.Journal.LastSnapshot != *want.Journal.LastSnapshot || *got.Disk != *want.Disk {
		t.Errorf("%s", body)
	}
	if code, _, _ := ask(c, "POST", "/store"); code != 405 {
		t.Errorf("POST /store = %d", code)
	}
}
