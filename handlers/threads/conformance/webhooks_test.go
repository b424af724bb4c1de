package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/fuzz/rounds"
)

// TestWebhooksOverCrashes kills the server again and again while it delivers to a target that fails
// at times. Every message arrives, and none of a thread before the one before it has arrived.
func TestWebhooksOverCrashes(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	arrived, requests := map[string]map[int]string{}, 0
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		var doc struct {
			Type string
			Data struct {
				Thread  string `json:"thread_id"`
				Message struct {
					ID  string `json:"message_id"`
					Seq int
				}
			}
		}
		if err := json.Unmarshal(text, &doc); err != nil || doc.Type != "message.posted" || doc.Data.Message.ID != r.Header.Get("webhook-id") {
			t.Errorf("%s: %v", text, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if requests++; rand.IntN(500) == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		got, seq := arrived[doc.Data.Thread], doc.Data.Message.Seq
		if got == nil {
			got = map[int]string{}
			arrived[doc.Data.Thread] = got
		}
		if _, before := got[seq-1]; seq > 1 && !before || got[seq] != "" && got[seq] != doc.Data.Message.ID {
			t.Errorf("message %d of %s arrives before the one before it, or is another", seq, doc.Data.Thread)
		}
		got[seq] = doc.Data.Message.ID
	}))
	defer target.Close()
	s := &server{t: t, whole: t, dir: t.TempDir(), env: []string{"TRUNKLINE_STORE_SNAPSHOT_BYTES=50000", "TRUNKLINE_THREADS_HOT_BYTES=1048576"}, bridges: map[string]*peer{}}
	for name, text := range map[string]string{"secret": secret, "hook": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		"trunkline.yaml": fmt.Sprintf("threads:\n  webhooks:\n    - {name: h, url: %q, secret_file: hook, event_types: [message], allow_private: [127.0.0.1]}\n", target.URL)} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.run()
	t.Cleanup(s.kill)
	var writers []*writer
	for i := range 3 {
		writers = append(writers, &writer{name: fmt.Sprint("w", i), thread: s.create(), receipts: map[string]receipt{}})
	}
	for range rounds.Of(2, 4) {
		var running sync.WaitGroup
		for _, w := range writers {
			p := s.dial(executioner) // before the kill
			running.Go(func() { w.run(p) })
		}
		time.Sleep(time.Duration(20+rand.IntN(60)) * time.Millisecond)
		s.kill()
		running.Wait()
		s.run()
	}
	posted := 0
	for _, w := range writers {
		if w.err != nil {
			t.Fatal(w.err)
		}
		a := s.post("read_messages", reviewer, fmt.Sprintf(`{"thread_id":"%s","since_seq":999999,"limit":1}`, w.thread))
		last := int(a.body["next_seq"].(float64))
		posted += last
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			mu.Lock()
			n := len(arrived[w.thread])
			for _, r := range w.receipts {
				if id := arrived[w.thread][r.seq]; id != "" && id != r.id {
					t.Errorf("message %d is %s, want %s", r.seq, id, r.id)
				}
			}
			mu.Unlock()
			if n == last {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d of %d messages have arrived: %s", n, last, s.log)
			}
		}
	}
	mu.Lock()
	t.Logf("%d messages, %d requests", posted, requests)
	mu.Unlock()
	if strings.Contains(s.log.String(), "ERROR") {
		t.Error(s.log)
	}
	s.stop()
}
