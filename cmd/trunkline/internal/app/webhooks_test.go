package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// hookTarget counts the messages that it receives, by what they are.
type hookTarget struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	bodies []string
}

func newHookTarget(t *testing.T) *hookTarget {
	h := &hookTarget{status: http.StatusOK}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.bodies = append(h.bodies, string(body))
		w.WriteHeader(h.status)
	}))
	t.Cleanup(h.Close)
	return h
}

// answer is how later requests are answered.
func (h *hookTarget) answer(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status = status
}

func (h *hookTarget) await(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		h.mu.Lock()
		got := len(h.bodies)
		h.mu.Unlock()
		if got >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d requests, want %d", got, n)
		}
	}
}

// writeHooks writes the settings file of the working directory.
func writeHooks(t *testing.T, hooks ...string) {
	t.Helper()
	text := "threads:\n  webhooks: [" + strings.Join(hooks, ", ") + "]\n"
	if err := os.WriteFile("trunkline.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newThread makes a thread and returns what posts to it.
func (r *reloadable) newThread(is *issuer) (post func()) {
	r.t.Helper()
	_, created := r.ask(is.good(), "/v1/create_thread", `{"workspace_id":"wk","title":"t","type":"workflow","participants":["lead"]}`)
	id := created[strings.Index(created, `"th_`)+1:]
	id = id[:strings.IndexByte(id, '"')]
	return func() {
		r.t.Helper()
		if status, body := r.ask(is.good(), "/v1/post_message", fmt.Sprintf(`{"thread_id":%q,"schema_version":1,"kind":"chat","body":"b"}`, id)); status != http.StatusOK {
			r.t.Fatal(status, body)
		}
	}
}

// lookAtWebhooks: a reload changes where messages go, adds and removes webhooks, reads their
// secrets and enables those that were disabled.
func lookAtWebhooks(t *testing.T) {
	t.Chdir(t.TempDir())
	a, b := newHookTarget(t), newHookTarget(t)
	secret := fileOf(t, []byte(strings.Repeat("s", 24)))
	hook := func(name, url string) string {
		return fmt.Sprintf(`{name: %s, url: %q, secret_file: %q, allow_private: ["127.0.0.1"]}`, name, url, secret)
	}
	is := newIssuer(t)
	writeHooks(t, hook("h", a.URL))
	r := startThreads(t, is)
	post := r.newThread(is)
	post()
	a.await(t, 1)
	change := func(ok bool, hooks ...string) {
		t.Helper()
		writeHooks(t, hooks...)
		if out := r.reload(); out.OK != ok || ok && !slices.Equal(out.Changed, []string{"threads.webhooks"}) {
			t.Fatalf("%v: %+v", hooks, out)
		}
	}
	change(true, hook("h", b.URL))
	post()
	b.await(t, 1)
	change(false, strings.Replace(hook("h", a.URL), secret, secret+"-missing", 1))
	post()
	b.await(t, 2)
	a.answer(http.StatusGone)
	change(true, hook("h", a.URL))
	post()
	a.await(t, 2)
	shown := func(path, want string) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			_, body := r.get(path)
			if strings.Contains(body, want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %s, want %s", path, body, want)
			}
		}
	}
	shown("/webhooks", `"name":"h","host":"`+strings.TrimPrefix(a.URL, "http://")+`","disabled":true,"delivered":3,"failed":1,"last_status":410,"last_error":"status 410","pending_threads":1,"dead_letters":0,"dropped_dead_letters":0}`)
	shown("/metrics", `trunkline_threads_webhook_attempts_total{result="failed",webhook="h"} 1`)
	shown("/metrics", `trunkline_threads_webhook_attempts_total{result="ok",webhook="h"} 3`)
	shown("/metrics", `trunkline_threads_webhook_pending{webhook="h"} 1`)
	shown("/metrics", `trunkline_threads_webhook_dead_letters{webhook="h"} 0`)
	a.answer(http.StatusOK)
	if out := r.reload(); !out.OK || len(out.Changed) > 0 {
		t.Errorf("%+v", out)
	}
	a.await(t, 3)
	change(true)
	shown("/webhooks", `{"webhooks":[]}`)
}

// TestWebhookRoutes: lists are for viewers, and dead letters are sent again by operators alone.
func TestWebhookRoutes(t *testing.T) {
	t.Chdir(t.TempDir())
	writeHooks(t, fmt.Sprintf(`{name: h, url: "http://127.0.0.1:1", secret_file: %q, allow_private: ["127.0.0.1"]}`, fileOf(t, []byte(strings.Repeat("s", 24)))))
	is := newIssuer(t)
	r := startThreads(t, is, tokenFiles(t)...)
	r.newThread(is)()
	f := func(method, path, token string, status int, body string) {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+r.addr("admin")+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got, _ := io.ReadAll(resp.Body); resp.StatusCode != status || !strings.Contains(string(got), body) || status == 200 && method != "HEAD" && !json.Valid(got) {
			t.Errorf("%s %s: %d %s, want %d %s", method, path, resp.StatusCode, got, status, body)
		}
	}
	f("GET", "/webhooks", "", 401, "token")
	f("GET", "/webhooks", viewerToken, 200, `"host":"127.0.0.1:1"`)
	f("HEAD", "/webhooks", viewerToken, 200, "")
	f("GET", "/webhooks/h/dead", viewerToken, 200, `{"dead_letters":[]}`)
	f("GET", "/webhooks/x/dead", viewerToken, 404, `there is no webhook \"x\"`)
	f("GET", "/webhooks/h", viewerToken, 404, "")
	f("POST", "/webhooks", operatorToken, 405, "")
	f("POST", "/webhooks/h/dead", operatorToken, 405, "")
	f("GET", "/webhooks/h/resend", operatorToken, 405, "")
	f("POST", "/webhooks/h/resend", "", 401, "token")
	f("POST", "/webhooks/h/resend", viewerToken, 403, "may not change anything")
	f("POST", "/webhooks/h/resend", operatorToken, 200, `{"resent":0}`)
	f("POST", "/webhooks/h/resend?thread_id=th_x&seq=3", operatorToken, 200, `{"resent":0}`)
	f("POST", "/webhooks/h/resend?seq=x", operatorToken, 400, "want a number")
	f("POST", "/webhooks/x/resend", operatorToken, 404, "there is no webhook")
	if !strings.Contains(r.log.String(), "action=webhook_resend webhook=h thread_id=th_x seq=3 resent=0") {
		t.Error(r.log.String())
	}
}
