package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/handlers/threads/token"
)

// eraseRig is a server with agent threads whose files a test reads.
type eraseRig struct {
	*instance
	dir     string
	is      *issuer
	set     []string
	pattern []byte // what is to be erased
}

func newEraseRig(t *testing.T, mode string) *eraseRig {
	r := &eraseRig{dir: filepath.Join(t.TempDir(), "data"), is: newIssuer(t), pattern: []byte("5ecretText")}
	r.set = append(tokenFiles(t), "store.mode="+mode, "store.dir="+r.dir, "threads.public_key_file="+r.is.file, "threads.issuer=i",
		"threads.listen_addr=127.0.0.1:0", "threads.lines_addr=", "threads.supervisor_mode=off", "store.snapshot_bytes=100000")
	r.instance = start(t, r.set...)
	return r
}

func (r *eraseRig) tokenOf(agent string, role token.Role) string {
	r.t.Helper()
	now := float64(time.Now().Unix())
	text, err := token.Sign(r.is.private, &token.Claims{Agent: agent, Workspace: "wk", Session: "s-" + agent, ID: "j", Role: role,
		Issued: now, Expires: now + 3600}, "i", token.DefaultAudience)
	if err != nil {
		r.t.Fatal(err)
	}
	return text
}

// send sends a request and returns its status and body.
func (r *eraseRig) send(method, at, path, token, body string) (int, string) {
	r.t.Helper()
	q, err := http.NewRequest(method, "http://"+r.addr(at)+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if q.Header.Set("Content-Type", "application/json"); token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// call runs a method.
func (r *eraseRig) call(token, method, body string, args ...any) (out map[string]any) {
	r.t.Helper()
	status, text := r.send("POST", "threads http", "/v1/"+method, token, fmt.Sprintf(body, args...))
	if err := json.Unmarshal([]byte(text), &out); err != nil || status != http.StatusOK {
		r.t.Fatalf("%s: %d %s", method, status, text)
	}
	return out
}

// found returns the files that have the pattern.
func (r *eraseRig) found() (names []string) {
	r.t.Helper()
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // it was removed
		}
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, r.pattern) {
			names = append(names, path[len(r.dir):])
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return names
}

// purged waits until all erasures are.
func (r *eraseRig) purged() {
	r.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		status, text := r.send("GET", "admin", "/erasures", operatorToken, "")
		if status != http.StatusOK || time.Now().After(deadline) {
			r.t.Fatalf("%d %s\n%s", status, text, r.log.String())
		}
		if strings.Contains(text, `"state":"purged"`) && !strings.Contains(text, `"state":"pending"`) {
			return
		}
	}
}

// fill has the pattern in all that an erasure is about, and in several files.
func (r *eraseRig) fill(lead, ann string) (id string) {
	r.t.Helper()
	id = r.call(lead, "create_thread", `{"workspace_id":"wk","title":"t %s","type":"workflow","participants":["ann"],"idempotency_key":"k %[1]s"}`, r.pattern)["thread_id"].(string)
	for i := range 300 {
		r.call(ann, "post_message", `{"thread_id":%q,"schema_version":1,"kind":"event","body":"%d %s %0900d","metadata":{"m":%[3]q},"idempotency_key":"k%[2]d %[3]s"}`, id, i, r.pattern, i)
	}
	r.call(lead, "trigger_participant", `{"thread_id":%q,"target_agent_id":"ann","reason":"r %s","trigger_prompt":"p %[2]s"}`, id, r.pattern)
	r.call(ann, "update_thread_status", `{"thread_id":%q,"status":"blocked","reason":"s %s","metadata":{"m":%[2]q}}`, id, r.pattern)
	return id
}

// TestEraseThreadFromFiles: an erased thread is gone from all files of a server, which goes on and
// starts again.
func TestEraseThreadFromFiles(t *testing.T) {
	for _, mode := range []string{"always", "interval"} {
		t.Run(mode, func(t *testing.T) {
			r := newEraseRig(t, mode)
			lead, ann := r.tokenOf("lead", token.Coordinator), r.tokenOf("ann", token.Participant)
			id := r.fill(lead, ann)
			other := r.call(lead, "create_thread", `{"workspace_id":"wk","title":"t","type":"workflow","participants":["ann"]}`)["thread_id"].(string)
			for i := range 50 {
				r.call(ann, "post_message", `{"thread_id":%q,"schema_version":1,"kind":"chat","body":"stays %d"}`, other, i)
			}
			r.await("snapshot written") // rows are in files
			if at := strings.Join(r.found(), " "); !strings.Contains(at, "/rows/") || !strings.Contains(at, ".log") {
				t.Fatal("it tests nothing: what is to be erased is in", at)
			}
			status, text := r.send("POST", "admin", "/threads/"+id+"/erase", operatorToken, `{"reason":"on request"}`)
			if status != http.StatusAccepted || !strings.Contains(text, `"thread_id":"`+id+`"`) {
				t.Fatalf("%d %s", status, text)
			}
			got := r.call(lead, "read_messages", `{"thread_id":%q,"limit":1}`, id)["messages"].([]any)[0].(map[string]any)
			if got["body"] != "[erased]" || got["erased"] != true || got["sender_agent_id"] != "ann" || got["metadata"] != nil || got["seq"] != 1.0 {
				t.Errorf("%v", got)
			}
			r.purged()
			r.check(lead, id, other)
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			if at := r.found(); len(at) > 0 {
				t.Errorf("after the end it is in %v", at)
			}
			r.instance = start(t, r.set...)
			r.check(lead, id, other)
			r.purged()
		})
	}
}

// check finds nothing of the pattern, and the rest.
func (r *eraseRig) check(lead, id, other string) {
	r.t.Helper()
	if at := r.found(); len(at) > 0 {
		r.t.Errorf("it is in %v", at)
	}
	status, text := r.send("GET", "admin", "/threads/"+id+"/export", operatorToken, "")
	if status != http.StatusOK || strings.Contains(text, string(r.pattern)) || !strings.HasSuffix(text, "{\"end\":true,\"messages\":300}\n") {
		r.t.Errorf("%d %.500s", status, text)
	}
	if got := r.call(lead, "read_messages", `{"thread_id":%q,"limit":200}`, other)["messages"].([]any); len(got) != 50 {
		r.t.Errorf("%d messages of another thread", len(got))
	}
	if _, text := r.send("GET", "threads http", "/v1/audit?limit=500", lead, ""); strings.Contains(text, string(r.pattern)) || !strings.Contains(text, "admin.erase_") {
		r.t.Errorf("audit: %s", text)
	}
	if _, text := r.send("GET", "threads http", "/v1/trigger_jobs?thread_id="+id, lead, ""); strings.Contains(text, string(r.pattern)) || !strings.Contains(text, "CANCELLED") {
		r.t.Errorf("jobs: %s", text)
	}
}

// TestEraseAgentFromFiles: an erased agent is gone from all files, but for its name in the list of
// participants and in the audit log.
func TestEraseAgentFromFiles(t *testing.T) {
	r := newEraseRig(t, "always")
	lead, ann := r.tokenOf("lead", token.Coordinator), r.tokenOf("ann", token.Participant)
	r.call(lead, "create_thread", `{"workspace_id":"wk","title":"t","type":"workflow","participants":["ann"]}`)
	id := r.call(lead, "create_thread", `{"workspace_id":"wk","title":"t","type":"workflow","participants":["ann"]}`)["thread_id"].(string)
	for i := range 100 {
		r.call(ann, "post_message", `{"thread_id":%q,"schema_version":1,"kind":"chat","body":"%d %s"}`, id, i, r.pattern)
		r.call(lead, "post_message", `{"thread_id":%q,"schema_version":1,"kind":"chat","body":"stays"}`, id)
	}
	r.call(ann, "ack_read", `{"thread_id":%q,"last_read_seq":5}`, id)
	r.call(ann, "heartbeat_session", `{"session_id":"s-ann","runtime":"r %s","resumable":true,"status":"idle"}`, r.pattern)
	r.call(lead, "trigger_participant", `{"thread_id":%q,"target_agent_id":"ann","reason":"r %s","trigger_prompt":"p %[2]s"}`, id, r.pattern)
	r.call(ann, "update_thread_status", `{"thread_id":%q,"status":"blocked","reason":"s %s"}`, id, r.pattern)
	time.Sleep(700 * time.Millisecond) // a heartbeat is written
	if status, text := r.send("POST", "admin", "/agents/wk/ann/erase", operatorToken, `{"reason":"on request"}`); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, text)
	}
	r.purged()
	if at := r.found(); len(at) > 0 {
		t.Errorf("it is in %v", at)
	}
	for i, m := range r.call(lead, "read_messages", `{"thread_id":%q,"limit":200}`, id)["messages"].([]any) {
		got := m.(map[string]any)
		if sender := got["sender_agent_id"].(string); (i%2 == 0) != strings.HasPrefix(sender, "erased:") || (got["body"] == "stays") != (i%2 == 1) {
			t.Fatalf("%v", got)
		}
	}
	// It may go on: its cursor and session are new.
	r.call(ann, "ack_read", `{"thread_id":%q,"last_read_seq":1}`, id)
	r.call(ann, "heartbeat_session", `{"session_id":"s-ann","runtime":"r","resumable":true,"status":"idle"}`)
}

// TestEraseOrders: who may erase and export, and what is refused.
func TestEraseOrders(t *testing.T) {
	r := newEraseRig(t, "memory")
	lead := r.tokenOf("lead", token.Coordinator)
	id := r.call(lead, "create_thread", `{"workspace_id":"wk","title":"t","type":"workflow","participants":["ann"]}`)["thread_id"].(string)
	ok := `{"reason":"r"}`
	for _, c := range []struct {
		method, path, token, body string
		status                    int
	}{
		{"POST", "/threads/" + id + "/erase", "", ok, http.StatusUnauthorized},
		{"POST", "/threads/" + id + "/erase", viewerToken, ok, http.StatusForbidden},
		{"GET", "/threads/" + id + "/export", viewerToken, "", http.StatusForbidden},
		{"GET", "/erasures", viewerToken, "", http.StatusForbidden},
		{"POST", "/agents/wk/ann/erase", viewerToken, ok, http.StatusForbidden},
		{"GET", "/threads/" + id + "/erase", operatorToken, "", http.StatusMethodNotAllowed},
		{"DELETE", "/threads/" + id + "/erase", operatorToken, "", http.StatusMethodNotAllowed},
		{"GET", "/threads/th_none/export", operatorToken, "", http.StatusNotFound},
		{"POST", "/threads/th_none/erase", operatorToken, ok, http.StatusNotFound},
		{"POST", "/threads/" + id + "/erase", operatorToken, "", http.StatusBadRequest},
		{"POST", "/threads/" + id + "/erase", operatorToken, "{}", http.StatusBadRequest},
		{"POST", "/threads/" + id + "/erase", operatorToken, `{"reason":" "}`, http.StatusBadRequest},
		{"POST", "/threads/" + id + "/erase", operatorToken, `{"reason":"a\nb"}`, http.StatusBadRequest},
		{"POST", "/threads/" + id + "/erase", operatorToken, `{"reason":"` + strings.Repeat("x", maxEraseReason+1) + `"}`, http.StatusBadRequest},
		{"POST", "/threads/" + id + "/erase", operatorToken, `{"reason":"r"` + strings.Repeat(" ", maxEraseBody) + `}`, http.StatusBadRequest},
		{"POST", "/agents/wk/a%0ab/erase", operatorToken, ok, http.StatusBadRequest},
		{"GET", "/threads/" + id + "/export", operatorToken, "", http.StatusOK},
		{"POST", "/threads/" + id + "/erase", operatorToken, `{"reason":"` + strings.Repeat("x", maxEraseReason) + `"}`, http.StatusAccepted},
		{"POST", "/threads/" + id + "/erase", operatorToken, ok, http.StatusAccepted},
		{"POST", "/agents/wk/a%2Fb/erase", operatorToken, ok, http.StatusAccepted},
	} {
		if status, text := r.send(c.method, "admin", c.path, c.token, c.body); status != c.status {
			t.Errorf("%s %s %.40s: %d %s, want %d", c.method, c.path, c.body, status, text, c.status)
		}
	}
	r.purged()
	if _, text := r.send("GET", "admin", "/erasures", operatorToken, ""); strings.Count(text, `"thread_id":"`+id+`"`) != 2 || !strings.Contains(text, `"agent_id":"a/b"`) {
		t.Error(text)
	}
}
