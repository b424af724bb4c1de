package loadgen

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// parlor is a server of threads that knows which are open and nothing else about them.
type parlor struct {
	mu     sync.Mutex // of all below
	token  string
	full   int // number of threads above which it takes no more
	wide   bool
	mute   string // the method that it does not answer
	dials  int
	open   map[string]bool
	closed int
	posts  map[string]int // by thread
	keys   map[string]bool
	wrong  []string // what no client may send
}

func threadOf(n int) string { return fmt.Sprintf("th_%026d", n) }

func (s *parlor) dial(context.Context) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials++
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		known := false
		for in := bufio.NewScanner(theirs); in.Scan(); {
			answer, muted := s.answer(in.Bytes(), &known)
			if muted {
				continue
			}
			if _, err := theirs.Write([]byte(answer + "\n")); err != nil {
				return
			}
		}
	}()
	return ours, nil
}

func (s *parlor) answer(line []byte, known *bool) (answer string, muted bool) {
	var q struct {
		ID, Method string
		Params     map[string]any
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := json.Unmarshal(line, &q); err != nil {
		s.wrong = append(s.wrong, string(line))
	}
	refuse := func(code string) (string, bool) {
		return fmt.Sprintf(`{"id":%q,"ok":false,"error":{"code":%q,"message":"no"}}`, q.ID, code), false
	}
	text := func(name string) string { s, _ := q.Params[name].(string); return s }
	result := "{}"
	switch thread := text("thread_id"); {
	case q.Method == s.mute:
		return "", true
	case q.Method == "auth":
		if *known = text("token") == s.token && text("protocol") == "threads/1"; !*known {
			return refuse("UNAUTHORIZED")
		}
		result = `{"agent_id":"lead","workspace_id":"w1"}`
	case !*known:
		return refuse("UNAUTHORIZED")
	case q.Method == "create_thread":
		if len(s.open) >= s.full {
			return refuse("FORBIDDEN")
		}
		if text("workspace_id") != "w1" || fmt.Sprint(q.Params["participants"]) != "[lead]" {
			s.wrong = append(s.wrong, string(line))
		}
		id := threadOf(len(s.open))
		s.open[id] = true
		if s.wide {
			id += "0"
		}
		result = `{"thread_id":"` + id + `","status":"active"}`
	case !s.open[thread]:
		return refuse("NOT_FOUND")
	case q.Method == "post_message":
		s.posts[thread]++
		if key := text("idempotency_key"); key == "" || s.keys[key] {
			s.wrong = append(s.wrong, string(line))
		} else {
			s.keys[key] = true
		}
	case q.Method == "update_thread_status" && text("status") == "closed":
		delete(s.open, thread)
		s.closed++
	}
	return fmt.Sprintf(`{"id":%q,"ok":true,"result":%s}`, q.ID, result), false
}

// inParlor runs a plan against a parlor.
func inParlor(t *testing.T, s *parlor, p Plan) (r *Result, err error) {
	t.Helper()
	s.token, s.open, s.posts, s.keys = `t"1`, make(map[string]bool), make(map[string]int), make(map[string]bool)
	synctest.Test(t, func(t *testing.T) {
		if p.Target.Token == "" {
			p.Target.Token = s.token
		}
		p.Target.Protocol, p.Target.Addr, p.Target.Dial = ProtocolThreads, "fake:1", s.dial
		p.Schedule, p.Depth, p.Duration, p.Timeout, p.Interval = Schedule{To: 100}, 2, 2*time.Second, time.Second, time.Second
		r, err = run(t.Context(), p, nil, timerAlarm, secret)
	})
	if len(s.wrong) > 0 {
		t.Errorf("the server got %q", s.wrong[0])
	}
	return r, err
}

// TestThreadsOfARun are there for its requests, shared evenly, and closed after it.
func TestThreadsOfARun(t *testing.T) {
	f := func(conns, threads, want int) {
		t.Helper()
		s := &parlor{full: 100}
		r, err := inParlor(t, s, Plan{Conns: conns, Threads: threads, Mix: []Share{{Name: "post_message", Weight: 1}}})
		if err != nil || r.Total.Done != 200 || r.Total.Failed != 0 || r.Total.Late != 0 {
			t.Fatalf("%v %+v", err, r)
		}
		if len(s.posts) != want || s.closed != want || len(s.open) != 0 || len(s.keys) != 200 {
			t.Errorf("posts %v, %d closed, left over %v, %d keys", s.posts, s.closed, s.open, len(s.keys))
		}
		for thread, n := range s.posts {
			if n < 200/want-want || n > 200/want+want {
				t.Errorf("%s has %d posts of 200", thread, n)
			}
		}
	}
	f(4, 0, 4)
	f(4, 1, 1)
	f(4, 2, 2)
}

// TestTheMixOfThreads: what is not asked for is not made, and errors have their code.
func TestTheMixOfThreads(t *testing.T) {
	s := &parlor{full: 100}
	r, err := inParlor(t, s, Plan{Conns: 2})
	if err != nil || r.Total.Done != 200 || methodOf(r, "read_messages").Done < methodOf(r, "post_message").Done || len(s.posts) != 2 {
		t.Errorf("%v %+v", err, r)
	}
	s = &parlor{}
	r, err = inParlor(t, s, Plan{Conns: 2, Mix: []Share{{Name: "get_thread", Weight: 1, Body: []byte(`{"thread_id":"th_none"}`)}}})
	if err != nil || r.Total.Errors["NOT_FOUND"] != 200 || s.dials != 2 || s.closed != 0 {
		t.Errorf("%v %+v, %d dials", err, r, s.dials)
	}
}

// TestServersWithoutThreads: what cannot be prepared ends a run before it begins, and what was
// created until then is closed.
func TestServersWithoutThreads(t *testing.T) {
	f := func(s *parlor, p Plan, of error, want string) {
		t.Helper()
		p.Conns = 8
		_, err := inParlor(t, s, p)
		if !errors.Is(err, of) || !strings.Contains(err.Error(), want) || len(s.open) != 0 && !s.wide {
			t.Errorf("%v, want %q; left over %v", err, want, s.open)
		}
	}
	f(&parlor{full: 3}, Plan{}, ErrPrepare, "create_thread: FORBIDDEN")
	f(&parlor{full: 8, wide: true}, Plan{}, ErrPrepare, "has not 29 bytes")
	f(&parlor{full: 8, mute: "create_thread"}, Plan{}, context.DeadlineExceeded, "no reply to create_thread")
	f(&parlor{full: 8, mute: "auth"}, Plan{}, ErrConnect, "timeout")
	f(&parlor{full: 8}, Plan{Target: Target{Token: "other"}}, ErrConnect, "refuses the token: UNAUTHORIZED")
}
