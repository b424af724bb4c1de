package storage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/rounds"
)

func parts() []part.Part { return []part.Part{Part(), RestartPart(), ThreadsPart(), ProjectsPart()} }

// TestMain lets this test binary be the children of a run.
func TestMain(m *testing.M) {
	if part.IsChild(os.Args[1:]) {
		os.Exit(part.Main(parts(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestTapes(t *testing.T) {
	f := func(what string, tapes []*load.Tape, frames int) {
		t.Helper()
		if len(tapes) != 2 || tapes[1].Len() != frames {
			t.Errorf("%s: %d tapes of %d frames, want 2 of %d", what, len(tapes), tapes[1].Len(), frames)
		}
	}
	for method, frames := range map[string]int{recordUsage: 5, transitionState: 10, checkRateLimit: 5, updateEnvelope: 5} {
		f(method, tapesOf(method, span{100, 110}, 2, []string{"e"}), frames)
	}
	f(createProcess, freshTapes(2), 1)
	f("SET", redisTapes(span{0, 10}, 2), 5)
}

func TestSizesWorkOnRowsOfTheirOwn(t *testing.T) {
	f := &field{bench: bench{Run: &part.Run{Options: part.Options{Rows: 2048}}}}
	a, b := f.rows(many), f.rows(fewDeep)
	if a.to > b.from || a.to-a.from < many.conns || b.to > f.Rows {
		t.Errorf("spans %v and %v of %d rows", a, b, f.Rows)
	}
}

func TestEntries(t *testing.T) {
	const out = "kernel listening\n" + `{"time":"2026-01-01T00:00:00Z","msg":"recovered","secs":0.25,"records":7}` + "\n" +
		`{"time":"2026-01-01T00:00:09.5Z","msg":"snapshot written","index":9,"secs":1.5}` + "\n{\n" + `{"time":"2026-01-01T00:00:20Z","msg":"snapshot written","secs":2}`
	if got := entries(out, "recovered"); len(got) != 1 || got[0].Secs != 0.25 {
		t.Errorf("%+v", got)
	}
	got := entries(out, "snapshot written")
	if len(got) != 2 || !got[0].Time.Equal(time.Date(2026, 1, 1, 0, 0, 9, 5e8, time.UTC)) || got[1].Secs != 2 || entries(out, "nothing") != nil {
		t.Errorf("%+v", got)
	}
}

func TestSplitTakesASnapshotApart(t *testing.T) {
	const ms = time.Millisecond
	start := time.Unix(100, 0)
	var replies []reply
	for i := range 10 {
		replies = append(replies, reply{start.Add(time.Duration(10*i+5) * ms), 1000})
	}
	f := func(beside, during uint64, met int, snapshots ...[2]time.Duration) {
		t.Helper()
		var latency [2]load.Histogram
		var list []entry
		for _, s := range snapshots {
			list = append(list, entry{Time: start.Add(s[1]), Secs: (s[1] - s[0]).Seconds()})
		}
		got := split(start, replies, list, &latency)
		if b, d := latency[0].Total(), latency[1].Total(); b != beside || d != during || len(got) != met {
			t.Errorf("%v: %d beside, %d during and %d met, want %d, %d and %d", snapshots, b, d, len(got), beside, during, met)
		}
	}
	f(0, 0, 0)
	f(2, 3, 1, [2]time.Duration{20 * ms, 50 * ms})
	f(1, 3, 1, [2]time.Duration{15 * ms, 45 * ms}) // the first moment is in it, the last is not
	f(0, 2, 1, [2]time.Duration{-30 * ms, 20 * ms})
	f(3, 4, 2, [2]time.Duration{-50 * ms, -40 * ms}, [2]time.Duration{10 * ms, 30 * ms}, [2]time.Duration{50 * ms, 70 * ms})
}

func TestBareHandler(t *testing.T) {
	s := httptest.NewServer(bare())
	defer s.Close()
	addr := strings.TrimPrefix(s.URL, "http://")
	got, err := ask(addr, string(load.AppendPost(nil, "/", bytes.Repeat([]byte("x"), 1<<16))), `"seq":(\d+),`)
	if err != nil || got != "27" {
		t.Errorf("%s %v", got, err)
	}
	refused := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer refused.Close()
	if _, err := ask(strings.TrimPrefix(refused.URL, "http://"), string(load.AppendPost(nil, "/", nil)), "(never)"); err == nil || !strings.Contains(err.Error(), "403 Forbidden") {
		t.Error(err)
	}
}

// sent runs every tape twice, for one request each, against serve, which returns what it got.
func sent(t *testing.T, cfg load.Config, tapes []*load.Tape, serve func(in *bufio.Reader, out io.Writer) string) (all []string) {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	got := make(chan string)
	go func() {
		defer close(got)
		for c, err := ln.Accept(); err == nil; c, err = ln.Accept() {
			text := serve(bufio.NewReader(c), c)
			c.Close()
			got <- text
		}
	}()
	for _, tape := range tapes {
		for range 2 {
			cfg.Addr, cfg.Tapes, cfg.Depth, cfg.Once = ln.Addr().String(), []*load.Tape{tape}, 1, true
			s, err := load.Start(cfg)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, <-got)
			if _, err := s.Wait(); err != nil {
				t.Error(err)
			}
		}
	}
	return all
}

// TestPostsHaveKeysOfTheirOwn: no two posts of a connection have one key, whichever cell they are
// of and however often it runs, and each connection shows its token.
func TestPostsHaveKeysOfTheirOwn(t *testing.T) {
	b := &talk{tokens: []string{"t0", "t1"}, own: []string{"th_0", "th_1", "th_2"}}
	keys := map[string]bool{}
	take := func(thread, token, text string) {
		var p struct {
			Thread string `json:"thread_id"`
			Key    string `json:"idempotency_key"`
		}
		at := strings.Index(text, `{"thread_id"`)
		if err := json.NewDecoder(strings.NewReader(text[max(at, 0):])).Decode(&p); err != nil || !strings.Contains(text, token) || p.Thread != thread || keys[thread+token+p.Key] {
			t.Errorf("thread %s, %s, %v: %s", thread, token, err, text)
		}
		keys[thread+token+p.Key] = true
	}
	lines := load.Config{Protocol: load.Lines, Good: lineGood, Greeted: lineGreeted}
	for name, thread := range map[string]func(conn int) string{"own": func(conn int) string { return b.own[conn] }, "one": func(int) string { return b.own[2] }} {
		tapes := b.lineTapes(2, "post_message", func(conn int) string { return postBody(thread(conn), name) })
		for i, text := range sent(t, lines, tapes, func(in *bufio.Reader, out io.Writer) string {
			hello, _ := in.ReadString('\n')
			_, _ = io.WriteString(out, lineGreeted+"}\n")
			line, _ := in.ReadString('\n')
			_, _ = io.WriteString(out, lineGood+"}\n")
			return hello + line
		}) {
			take(thread(i/2), b.tokens[i/2], text)
		}
	}
	for i, text := range sent(t, load.Config{Protocol: load.HTTP}, each(2, nil, b.post), func(in *bufio.Reader, out io.Writer) string {
		r, err := http.ReadRequest(in)
		if err != nil {
			return err.Error()
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(out, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		return r.Header.Get("Authorization") + "\n" + string(body)
	}) {
		take(b.own[i/2], b.tokens[i/2], text)
	}
	if len(keys) != 12 {
		t.Errorf("%d keys of 12 posts", len(keys))
	}
}

// TestWholeRun measures a little of everything with the real server: whether it fits together, not
// what comes out.
func TestWholeRun(t *testing.T) {
	if !rounds.Long() {
		t.Skip("measures a little of everything, in the long form")
	}
	dir := t.TempDir()
	t.Chdir("../..")
	server := kit.Program(t, dir)
	for _, args := range []string{"store threads projects -window 20ms", "restart -window 250ms"} { // which has to meet a snapshot
		args += " -rounds 1 -rows 2048 -redis off -warmup 5ms -server " + server + " -json " + dir
		var out bytes.Buffer
		if status := part.Main(parts(), strings.Fields(args), &out, &out); status != 0 {
			t.Fatalf("status %d: %s", status, out.String())
		}
	}
	for _, p := range parts() {
		var r part.Report
		b, err := os.ReadFile(filepath.Join(dir, p.Name+".json"))
		if err == nil {
			err = json.Unmarshal(b, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range r.Goals {
			if g.Verdict == goal.None && !strings.Contains(g.What, "redis") && !strings.Contains(g.What, "node") {
				t.Errorf("%s was not measured", g.What)
			}
		}
		for _, s := range r.Cells {
			alone, events := strings.HasPrefix(s.Method, "handler alone"), strings.HasPrefix(s.Method, "events")
			if m := s.Median; m.PerSec <= 0 || !alone && m.CPU <= 0 || !alone && !events && m.P50 <= 0 {
				t.Errorf("%v: %+v", s.Cell, m)
			}
		}
		rows := 0
		for _, table := range r.Tables {
			rows += len(table.Rows)
		}
		for _, table := range r.Tables {
			for _, row := range table.Rows {
				if len(row) == 9 && p.Name == "restart" && (row[2] == 0.0 || row[4] == "no" && row[5] == 0.0) {
					t.Errorf("no snapshot was met, or no time without: %v", row)
				}
			}
		}
		if want := map[string]int{"store": 10, "restart": 9}[p.Name]; rows != want {
			t.Errorf("%s: %d rows of tables, want %d: %s", p.Name, rows, want, fmt.Sprint(r.Tables))
		}
	}
}
