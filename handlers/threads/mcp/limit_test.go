package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

func claimsOf(n int) *token.Claims {
	return &token.Claims{Workspace: fmt.Sprint("wk_", n%2), Agent: fmt.Sprint("agent_", n/2)}
}

// TestLimiterModel compares a limiter with buckets that are computed again from all calls before.
func TestLimiterModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.SampledFrom([]int{1, 2, 6, 60}).Draw(t, "rate")
		l := newLimiter(rate)
		price := time.Minute / time.Duration(rate)
		type event struct {
			at   time.Time
			took bool
		}
		history := map[int][]event{}
		now := noon
		for range rapid.IntRange(1, 100).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 500, 1000, 9999, 10000, 30000, 60000, 70000, -5000}).Draw(t, "ms")) * time.Millisecond)
			who := rapid.IntRange(0, 3).Draw(t, "who")
			filled, last := time.Minute, now
			if h := history[who]; len(h) > 0 {
				last = h[0].at
			}
			for _, e := range append(history[who], event{at: now}) {
				if e.at.After(last) {
					filled, last = min(time.Minute, filled+e.at.Sub(last)), e.at
				}
				if e.took {
					filled -= price
				}
			}
			wait := l.take(claimsOf(who), now)
			if want := max(0, price-filled); wait != want {
				t.Fatalf("the wait is %v, want %v", wait, want)
			}
			history[who] = append(history[who], event{now, wait == 0})
		}
	})
}

// TestLimiterIsBounded fills the table: further agents share one bucket, and a full table lets
// no one through.
func TestLimiterIsBounded(t *testing.T) {
	l := newLimiter(2)
	l.most = 4
	for n := range 4 {
		if l.take(claimsOf(n), noon) != 0 {
			t.Fatalf("agent %d has to wait", n)
		}
	}
	if l.take(claimsOf(4), noon) != 0 || l.take(claimsOf(5), noon) != 0 {
		t.Error("the shared bucket is not full at first")
	}
	if l.take(claimsOf(6), noon) == 0 || l.take(claimsOf(4), noon) == 0 {
		t.Error("an agent without a bucket of its own is let through")
	}
	if l.take(claimsOf(0), noon) != 0 || l.take(claimsOf(0), noon) == 0 {
		t.Error("an agent with a bucket does not have its own")
	}
	if len(l.callers) != 4 {
		t.Errorf("%d buckets, want 4", len(l.callers))
	}
	later := noon.Add(time.Minute)
	if l.take(claimsOf(7), later) != 0 || len(l.callers) != 1 {
		t.Errorf("%d buckets after a minute, want 1", len(l.callers))
	}
}

// TestLimiterConcurrently lets many goroutines take from one bucket.
func TestLimiterConcurrently(t *testing.T) {
	l := newLimiter(100)
	var group sync.WaitGroup
	var mu sync.Mutex
	taken := 0
	for range 8 {
		group.Go(func() {
			for range 50 {
				if l.take(claimsOf(0), noon) == 0 {
					mu.Lock()
					taken++
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	if taken != 100 {
		t.Errorf("%d calls in a minute, want 100", taken)
	}
}

// TestRateLimit checks the answer to a call that is one too many (threads §3.4 C12, §6), through
// the front and through the SDK.
func TestRateLimit(t *testing.T) {
	s := start(t, Config{CallsPerMinute: 2})
	body := callText("get_thread", `{"thread_id":"th_1"}`)
	escaped := callText("get_thread", `{"thread_id":"th_1"},"requestState":""`)
	for _, b := range []string{body, escaped} {
		s.want(t, "within the limit", "POST", "", b, 200, `"structuredContent"`)
	}
	s.pass(time.Second)
	for _, b := range []string{body, escaped} {
		res := s.want(t, "one too many", "POST", "", b, 200).result(t).Result
		wantText(t, res.Content[0].Text, "RATE_LIMITED", 29_000)
	}
	s.want(t, "another agent", "POST", "Authorization: Bearer other", body, 200, `"structuredContent"`)
	s.want(t, "no tool", "POST", "", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 200, `"tools"`)
	s.pass(29 * time.Second)
	s.want(t, "later", "POST", "", body, 200, `"structuredContent"`)
	if calls, _ := s.taken(); len(calls) != 4 {
		t.Errorf("the dispatcher got %q", calls)
	}
}

// TestBatchIsBounded sends batches at the limits and beyond: the whole answer has maxAnswer bytes
// at most, each call has an answer, and nothing is run behind the first result that does not fit.
func TestBatchIsBounded(t *testing.T) {
	s := start(t, Config{})
	long := append(append([]byte(`{"x":"`), bytes.Repeat([]byte("x"), 1<<20)...), `"}`...)
	s.script.answer = func(dst []byte, _ *method.Caller, _ *method.Row, _ []byte) ([]byte, method.Outcome) {
		return append(dst, long...), method.Outcome{}
	}
	batch := func(n int, of string) string {
		var list []string
		for i := range n {
			list = append(list, strings.Replace(of, `"id":5`, fmt.Sprintf(`"id":%d`, i), 1))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	const list = `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`
	for name, c := range map[string]struct {
		n  int
		of string
	}{"long results": {40, callText("read_messages", `{}`)}, "lists": {maxBatch, list},
		"lists for long ids": {900, strings.Replace(list, `"id":5`, `"id":5`+strings.Repeat(" ", 1000), 1)}} {
		r := s.want(t, name, "POST", "", batch(c.n, c.of), 200)
		var answers []struct {
			ID     int
			Result json.RawMessage
			Error  struct{ Code int }
		}
		if err := json.Unmarshal([]byte(r.body), &answers); err != nil || len(answers) != c.n {
			t.Fatalf("%s: %d answers, %v", name, len(answers), err)
		}
		refused := 0
		for i, a := range answers {
			if a.Error.Code == -32600 {
				refused++
			} else if a.ID != i || a.Result == nil {
				t.Errorf("%s: answer %d is to %d", name, i, a.ID)
			}
		}
		if refused == 0 || refused == c.n || len(r.body) > maxAnswer {
			t.Errorf("%s: %d of %d are refused, %d bytes", name, refused, c.n, len(r.body))
		}
		made, _ := s.taken()
		if name == "long results" && len(made) > c.n-refused+1 {
			t.Errorf("%d calls were run, %d answered", len(made), c.n-refused)
		}
	}
	ping := `{"jsonrpc":"2.0","id":5,"method":"ping"}`
	s.want(t, "the longest batch", "POST", "", batch(maxBatch, ping), 200, `"id":999,"result":{}`)
	s.want(t, "one more", "POST", "", batch(maxBatch+1, ping), 400, `"code":-32600`)
	s.want(t, "the next request", "POST", "", callText("read_messages", `{}`), 200, `"structuredContent"`)
}

// wantText checks the envelope of a call that was one too many.
func wantText(t *testing.T, text, code string, ms int) {
	t.Helper()
	var e struct {
		Error struct {
			Code      string
			Retryable bool
			Details   struct {
				Wait int `json:"retry_after_ms"`
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil || e.Error.Code != code || !e.Error.Retryable || e.Error.Details.Wait != ms {
		t.Errorf("%v: %s, want %s with %d", err, text, code, ms)
	}
}

// TestBeside: the SDK answers maxOwn requests of an agent at once and refuses the next one; other
// agents have their own, and ordinary calls are not counted.
func TestBeside(t *testing.T) {
	s := start(t, Config{})
	begun, end := make(chan bool, maxOwn+1), make(chan bool)
	s.script.answer = func(dst []byte, _ *method.Caller, row *method.Row, _ []byte) ([]byte, method.Outcome) {
		if row.Name == method.Get {
			begun <- true
			<-end
		}
		return append(dst, "{}"...), method.Outcome{}
	}
	slow := callText("get_thread", `{},"requestState":""`) // not ordinary
	var calls sync.WaitGroup
	for range maxOwn {
		calls.Go(func() { s.want(t, "a slow call", "POST", "", slow, 200) })
	}
	for range maxOwn {
		<-begun
	}
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	if r := s.want(t, "one too many", "POST", "", list, 503); r.Header.Get("Retry-After") != "1" {
		t.Error(r.Header)
	}
	s.want(t, "of another agent", "POST", "Authorization: Bearer other", list, 200)
	s.want(t, "an ordinary call", "POST", "", callText("ack_read", `{}`), 200)
	close(end)
	calls.Wait()
	s.want(t, "later", "POST", "", list, 200)
}

// TestPendingOfTheSDK: a result of the SDK counts with what its answer takes, as long as that is
// written.
func TestPendingOfTheSDK(t *testing.T) {
	s := start(t, Config{Surface: method.Surface{Pending: method.NewBudget(1 << 20)}})
	s.script.answer = func(dst []byte, _ *method.Caller, _ *method.Row, doc []byte) ([]byte, method.Outcome) {
		return append(append(append(dst, `{"x":"`...), strings.Repeat("x", 1000*len(doc))...), `"}`...), method.Outcome{}
	}
	call := func(n int) string {
		return callText("read_messages", `{"x":"`+strings.Repeat("x", n)+`"},"requestState":""`)
	}
	for range 3 {
		s.want(t, "as much as fits", "POST", "", call(50), 200, `"structuredContent"`)
		res := s.want(t, "too long a result", "POST", "", call(100), 200).result(t).Result
		wantEnvelope(t, "too long a result", res.Content[0].Text, "INTERNAL")
	}
}
