package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// madeUp are the cells of one round with their requests/s: all goals are just reached.
func madeUp() map[goal.Cell]float64 {
	return map[goal.Cell]float64{
		cell(kernelServer, recordUsage, fewDeep()):           400,
		over(viaLines, threadServer, postOwn, fewDeep()):     200,
		over(viaLines, threadServer, postOne, fewDeep()):     100,
		over(viaLines, toolServer, noopTool, polled()):       1000,
		over(viaLines, threadServer, pollLast, polled()):     600,
		over(viaHTTP, bareHandler, readBody, crowd()):        50,
		over(viaHTTP, threadServer, postOwn, crowd()):        25,
		over(viaHTTP, threadServer, callTool, few()):         80,
		over(viaHTTP, goSDK, callTool, few()):                8,
		handlerCell(threadServer, "2025-11-25"):              100,
		handlerCell(goSDK, "2025-11-25"):                     10,
		handlerCell(threadServer, "2026-07-28"):              300,
		handlerCell(goSDK, "2026-07-28"):                     10,
		over(viaHTTP, nodeSDK, callTool, few()):              16,
		over(viaHTTP, threadServer, "of no goal", few()):     1,
		over(viaLines, threadServer, postOwn, few()):         1,
		cell(always, recordUsage, fewDeep()):                 1,
		over(viaLines, kernelServer, recordUsage, fewDeep()): 1,
	}
}

func TestThreadGoals(t *testing.T) {
	f := func(want string, change func(cells map[goal.Cell]float64)) {
		t.Helper()
		cells := madeUp()
		change(cells)
		var all []goal.Sample
		for c, rate := range cells {
			all = append(all, goal.Sample{Cell: c, PerSec: rate, CPU: 1e9 / rate})
		}
		goals := slices.DeleteFunc(threadGoals(all), func(g bounded) bool { return g.Verdict == goal.Reported })
		if got := verdicts(goals, goal.Pass); got != want || len(goals) != 6 {
			t.Errorf("not passed: %q, want %q", got, want)
		}
	}
	slower := func(c goal.Cell) func(cells map[goal.Cell]float64) {
		return func(cells map[goal.Cell]float64) { cells[c] *= 0.99 }
	}
	f("", func(map[goal.Cell]float64) {})
	f("threads: posts to 64 threads / RecordUsage, 64×16: MISS", slower(over(viaLines, threadServer, postOwn, fewDeep())))
	f("threads: posts to one thread / RecordUsage, 64×16: MISS", slower(over(viaLines, threadServer, postOne, fewDeep())))
	f("threads: empty polls / a trivial tool, 64×64: MISS", slower(over(viaLines, threadServer, pollLast, polled())))
	f("threads: posts over HTTP / a bare net/http handler, 256×1: MISS", slower(over(viaHTTP, threadServer, postOwn, crowd())))
	f("threads: MCP / Go SDK, handler alone: MISS", slower(handlerCell(threadServer, "2025-11-25")))
	f("threads: MCP calls / TypeScript SDK on node, 64×1: MISS", slower(over(viaHTTP, threadServer, callTool, few())))
	f("threads: MCP calls / TypeScript SDK on node, 64×1: none", func(cells map[goal.Cell]float64) {
		delete(cells, over(viaHTTP, nodeSDK, callTool, few()))
	})
}

func TestReadHandlers(t *testing.T) {
	f := func(out string, want ...goal.Sample) {
		t.Helper()
		got, err := readHandlers([]byte(out))
		if (err == nil) != (len(want) > 0) || !slices.Equal(got, want) {
			t.Errorf("%q: %+v %v, want %+v", out, got, err, want)
		}
	}
	f("goos: linux\nBenchmarkFront/2025-11-25-2  \t  500\t  2000 ns/op\t  94.37 MB/s\nBenchmarkSDK/2026-07-28 \t 7 \t 250000.5 ns/op\nPASS\n",
		goal.Sample{Cell: handlerCell(threadServer, "2025-11-25"), Requests: 500, PerSec: 500_000},
		goal.Sample{Cell: handlerCell(goSDK, "2026-07-28"), Requests: 7, PerSec: 1e9 / 250000.5})
	f("PASS\n")
	f("BenchmarkFront/2025-11-25-2 500 0 ns/op\n")
	f("BenchmarkOther/2025-11-25-2 500 1 ns/op\n")
}

// TestGoalsOfParts: goals of a part that was not asked for are not shown.
func TestGoalsOfParts(t *testing.T) {
	f := func(parts string, own, threads bool) {
		t.Helper()
		o, err := parseFlags([]string{"-parts", parts})
		if err != nil {
			t.Fatal(err)
		}
		r := newReport(t.TempDir(), o)
		r.conclude()
		has := func(begins string) bool {
			return slices.ContainsFunc(r.Goals, func(g bounded) bool { return strings.HasPrefix(g.What, begins) })
		}
		if has("always / ") != own || has("threads: ") != threads {
			t.Errorf("%s: %d goals", parts, len(r.Goals))
		}
	}
	f("cells", true, false)
	f("threads", false, true)
	f("restart,threads", true, true)
}

func TestBareHandler(t *testing.T) {
	s := httptest.NewServer(bare())
	defer s.Close()
	addr := strings.TrimPrefix(s.URL, "http://")
	got, err := send(addr, load.AppendPost(nil, "/", []byte(strings.Repeat("x", 3*bareBuffer))))
	if err != nil || string(got) != bareReply {
		t.Errorf("%s %v", got, err)
	}
	lost := httptest.NewServer(http.NotFoundHandler())
	defer lost.Close()
	if _, err := send(strings.TrimPrefix(lost.URL, "http://"), load.AppendPost(nil, "/", nil)); err == nil || !strings.Contains(err.Error(), "status 404") {
		t.Error(err)
	}
}

func TestFindNode(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := findNode(dir); err == nil || !strings.Contains(err.Error(), "install.sh") {
		t.Error(err)
	}
	at := filepath.Join(dir, "node", "node_modules", nodePackage)
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "package.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	if _, _, err := findNode(dir); err == nil {
		t.Error("node was found in an empty folder")
	}
	if err := os.WriteFile(filepath.Join(bin, "node"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	node, packages, err := findNode(dir)
	if err != nil || node != filepath.Join(bin, "node") || packages != filepath.Join(dir, "node") {
		t.Errorf("%s %s %v", node, packages, err)
	}
}

// sent runs every tape twice, for one request each, against serve, which returns what it got.
func sent(t *testing.T, protocol load.Protocol, tapes []*load.Tape, serve func(in *bufio.Reader, out io.Writer) string) (all []string) {
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
			s, err := load.Start(load.Config{Addr: ln.Addr().String(), Protocol: protocol, Tapes: []*load.Tape{tape}, Depth: 1, Once: true, Good: lineGood, Greeted: lineGreeted})
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
	b := &talk{tokens: []string{"t0", "t1"}, own: []string{"th_0", "th_1"}, one: "th_2"}
	b.threads, b.bare = new(load.Server), new(load.Server)
	keys := map[string]bool{}
	type post struct {
		Thread string `json:"thread_id"`
		Key    string `json:"idempotency_key"`
	}
	take := func(thread, token, text string, p post) {
		if !strings.Contains(text, token) || p.Thread != thread || keys[thread+token+p.Key] {
			t.Errorf("thread %s, %s: %s", thread, token, text)
		}
		keys[thread+token+p.Key] = true
	}
	overLines := func(in *bufio.Reader, out io.Writer) string {
		hello, _ := in.ReadString('\n')
		_, _ = io.WriteString(out, lineGreeted+"}\n")
		line, _ := in.ReadString('\n')
		_, _ = io.WriteString(out, lineGood+"}\n")
		return hello + line
	}
	for name, thread := range map[string]func(conn int) string{"own": func(conn int) string { return b.own[conn] }, "one": func(int) string { return b.one }} {
		tapes := b.lineTapes("post_message", func(conn int) string { return postBody(thread(conn), name) })
		for i, text := range sent(t, load.Answers, tapes, overLines) {
			_, line, _ := strings.Cut(text, "\n")
			var got struct{ Params post }
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			take(thread(i/2), b.tokens[i/2], text, got.Params)
		}
	}
	for i, text := range sent(t, load.HTTP, b.webTapes(b.overHTTP()[0]), func(in *bufio.Reader, out io.Writer) string {
		r, err := http.ReadRequest(in)
		if err != nil {
			return err.Error()
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(out, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		return r.Header.Get("Authorization") + "\n" + string(body)
	}) {
		_, body, _ := strings.Cut(text, "\n")
		var got post
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		take(b.own[i/2], b.tokens[i/2], text, got)
	}
	if len(keys) != 12 {
		t.Errorf("%d keys of 12 posts", len(keys))
	}
}
