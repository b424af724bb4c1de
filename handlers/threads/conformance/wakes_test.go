package conformance

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/fuzz/rounds"
)

// waker triggers with keys of its own.
type waker struct {
	name   string
	thread string
	ids    []string // by key, in order
	err    error
}

// run triggers until the server dies, first of all again what had no answer.
func (w *waker) run(p *peer) {
	for {
		key := fmt.Sprint(w.name, "-", len(w.ids))
		id, err := w.trigger(p, key)
		if err != nil || w.err != nil {
			return
		}
		w.ids = append(w.ids, id)
		time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
	}
}

func (w *waker) trigger(p *peer, key string) (id string, err error) {
	if err = p.send(`{"id":1,"method":"trigger_participant","params":{"thread_id":"%s","target_agent_id":"executioner_agent","reason":"r","trigger_prompt":"%s","idempotency_key":"%s"}}`,
		w.thread, key, key); err != nil {
		return "", err
	}
	line, err := p.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	var v struct {
		OK     bool
		Result struct {
			TriggerID string `json:"trigger_id"`
		}
	}
	if json.Unmarshal([]byte(line), &v) != nil || !v.OK {
		w.err = fmt.Errorf("%s: %s", key, line)
	}
	return v.Result.TriggerID, nil
}

// TestWakesOverCrashes triggers while the server is killed again and again: each key has one job,
// which is there under its first identifier and comes to an end, and no job runs two commands.
func TestWakesOverCrashes(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	spawn := `TRIGGER_SPAWN_ARGV=["/bin/sh","-c","printf '%s\\n' \"$1\" | grep -o 'id=trg_[0-9A-Z]*' >> \"$0\"","` + out + `","{prompt}"]`
	s := start(t, quick(spawn, "LOOP_MAX_TURNS=100000", "LOOP_MAX_REPEATED_FINDINGS=100000", "TRUNKLINE_STORE_SNAPSHOT_BYTES=50000")...)
	var all []*waker
	for i := range 3 {
		all = append(all, &waker{name: fmt.Sprint("w", i), thread: s.create()})
	}
	for range rounds.Of(2, 5) {
		var running sync.WaitGroup
		for _, w := range all {
			p := s.dial(coordinator)
			running.Go(func() { w.run(p) })
		}
		time.Sleep(time.Duration(50+rand.IntN(250)) * time.Millisecond)
		s.kill()
		running.Wait()
		s.run()
	}
	type job struct {
		TriggerID   string `json:"trigger_id"`
		Status      string `json:"job_status"`
		Code        string `json:"last_error_code"`
		CompletedAt string `json:"completed_at"`
	}
	interrupted := 0
	for _, w := range all {
		if w.err != nil {
			t.Fatal(w.err)
		}
		p := s.dial(coordinator)
		for i := range len(w.ids) + 1 {
			id, err := w.trigger(p, fmt.Sprint(w.name, "-", i))
			if err != nil || w.err != nil || i < len(w.ids) && id != w.ids[i] {
				t.Fatalf("key %d of %d has %s (%v, %v)", i, len(w.ids), id, err, w.err)
			}
		}
		var list struct{ Jobs []job }
		s.eventually("the end of all jobs", func() bool {
			list.Jobs = nil
			if err := json.Unmarshal([]byte(s.request("GET", "/v1/trigger_jobs?limit=200&thread_id="+w.thread, auditor, "").text), &list); err != nil {
				t.Fatal(err)
			}
			for _, j := range list.Jobs {
				if j.CompletedAt == "" {
					return false
				}
			}
			return true
		})
		if want := len(w.ids) + 1; len(list.Jobs) != min(want, 200) {
			t.Errorf("%d jobs for %d keys", len(list.Jobs), want)
		}
		text, _ := os.ReadFile(out)
		for _, j := range list.Jobs {
			n := strings.Count(string(text), "id="+j.TriggerID+"\n")
			if n > 1 || n < 1 && j.Code == "" || (j.Code != "") != (j.Status == "failed" && j.Code == "INTERRUPTED") {
				t.Errorf("%+v ran %d times", j, n)
			}
			if j.Code != "" {
				interrupted++
			}
		}
	}
	t.Logf("%d, %d and %d jobs, %d interrupted", len(all[0].ids), len(all[1].ids), len(all[2].ids), interrupted)
	s.stop()
}
