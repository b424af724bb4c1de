package tools

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/part"
	"trunkline/engine/connection"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/rounds"
)

func TestMain(m *testing.M) {
	if part.IsChild(os.Args[1:]) {
		os.Exit(part.Main([]part.Part{Part()}, os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// TestRequests: what is sent again and again has one length, and what has to differ does.
func TestRequests(t *testing.T) {
	for _, k := range append(hot(), external("kept", keptAID)) {
		lines := k.requests()
		seen := map[string]bool{}
		for _, l := range lines {
			if len(l) != len(lines[0]) || bytes.IndexByte(l, '\n') != len(l)-1 || seen[string(l)] {
				t.Errorf("%s: %q", k.name, lines)
			}
			seen[string(l)] = true
		}
		if err := k.check(`{"ok":false,"error":"overloaded"}`); err == nil {
			t.Errorf("%s: an error was taken", k.name)
		}
		if got := k.tapes(3); len(got) != 3 || got[2].Len() != len(lines) {
			t.Errorf("%s: %d tapes", k.name, len(got))
		}
	}
	if err := hot()[1].check(`{"ok":true,"status":"OK","output_json":"{}"}`); err == nil {
		t.Error("an execution was taken for a hit")
	}
}

// answering serves lines in this process.
func answering(t *testing.T, reply func(n int, line string) string) io.ReadWriter {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	go func() {
		defer theirs.Close()
		in := bufio.NewReader(theirs)
		for n := 0; ; n++ {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if _, err := io.WriteString(theirs, reply(n, line)); err != nil {
				return
			}
		}
	}()
	return ours
}

func TestPrime(t *testing.T) {
	const good = `{"ok":true,"status":"OK","output_json":"{}","error":"","ds_state":{"delta":true,"slots":{},"removed_slots":[]}}` + "\n"
	kept := strings.Replace(good, `"ds_state"`, `"idempotent_hit":true,"ds_state"`, 1)
	noop, hit := hot()[0], hot()[1]
	f := func(k kind, size int, problem string, reply func(n int, line string) string) {
		t.Helper()
		got, err := k.prime(answering(t, reply))
		if got != size || (err != nil) != (problem != "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %d, %v; want %d, %q", k.name, got, err, size, problem)
		}
	}
	f(noop, len(good), "", func(int, string) string { return good })
	f(hit, len(kept), "", func(n int, _ string) string {
		if n < hit.variety {
			return good
		}
		return kept
	})
	f(hit, 0, "idempotent_hit", func(int, string) string { return good })
	f(noop, 0, "is not in the reply", func(int, string) string { return "{}\n" })
	f(hit, 0, "replies have", func(n int, _ string) string { return strings.Replace(kept, "{}", strings.Repeat(" ", n), 1) })
}

// TestEchoSession feeds a stream of lines in every possible pair of pieces.
func TestEchoSession(t *testing.T) {
	f := func(reply, in, want string, end connection.Verdict) {
		t.Helper()
		for cut := range len(in) + 1 {
			s := &echoSession{}
			if reply != "" {
				s.reply = []byte(reply)
			}
			used, out, v := s.Feed([]byte(in[:cut]), nil, connection.Instant{})
			if v == connection.More {
				_, out, v = s.Feed([]byte(in[used:]), out, connection.Instant{})
			}
			if string(out) != want || v != end {
				t.Errorf("%q cut at %d: %q, verdict %d; want %q, %d", in, cut, out, v, want, end)
			}
		}
	}
	f("", "", "", connection.More)
	f("", "ab\ncd\ne", "ab\ncd\n", connection.More)
	f("xxx\n", "ab\ncd\ne", "xxx\nxxx\n", connection.More)
	f("", "ab\n\ncd\n", "ab\n", connection.Close)
	s := &echoSession{reply: make([]byte, connection.DefaultUnsentBytes)}
	if used, _, v := s.Feed([]byte("a\nb\nc\n"), nil, connection.Instant{}); used != 4 || v != connection.Yield {
		t.Errorf("used %d, verdict %d", used, v)
	}
	if s.Load().Done {
		t.Error("done before the end")
	}
	if s.EOF(connection.Instant{}); !s.Load().Done {
		t.Error("not done at the end")
	}
}

// TestCompare: the median of ratios, not of figures, as good as the worst member.
func TestCompare(t *testing.T) {
	rates := map[string][]float64{trunkline: {60, 10, 900}, echo: {100, 100, 1000}, small: {30, 30, 30}}
	at := map[string]int{}
	b := bench{Run: &part.Run{Options: part.Options{Rounds: 3}, Report: new(goal.Report)}}
	pairing := func(what, member string, must float64, peer string, noCPU bool) pair {
		side := func(server string) measured {
			c := goal.Cell{Server: server, Method: what + member}
			return measured{c, func() (goal.Sample, error) {
				n := at[c.String()]
				at[c.String()]++
				return goal.Sample{PerSec: rates[server][n%3], CPU: 1e3 / rates[server][0]}, nil
			}}
		}
		return pair{goal.Goal{What: what, Must: must}, member, side(trunkline), side(peer), noCPU}
	}
	if err := b.compare([]pair{pairing("good", "m", 0.6, echo, false), pairing("bad", "m", 0.61, echo, true), pairing("two", "m", 0.6, echo, false), pairing("two", "n", 0.6, small, false), pairing("said", "m", 0, echo, false)}); err != nil {
		t.Fatal(err)
	}
	want := []goal.Goal{{What: "good", Verdict: goal.Pass}, {What: "bad", Verdict: goal.Miss}, {What: "two", Verdict: goal.Pass}, {What: "said", Verdict: goal.Reported}}
	if len(b.Report.Goals) != len(want) {
		t.Fatalf("%+v", b.Report.Goals)
	}
	for i, g := range b.Report.Goals {
		cpu := 0.6
		if g.What == "bad" {
			cpu = 0
		}
		if g.What != want[i].What || g.Verdict != want[i].Verdict || g.Measured != 0.6 || math.Abs(g.CPU["m"]-cpu) > 1e-9 {
			t.Errorf("%+v, want %+v", g, want[i])
		}
	}
	if g := b.Report.Goals[2]; len(g.Members) != 2 || g.Members["n"] != 2 {
		t.Errorf("%+v", g)
	}
}

func TestGoodReplies(t *testing.T) {
	if err := good([]byte(`{"ok":true,"status":"OK","x":1}` + "\n")); err != nil {
		t.Error(err)
	}
	if good([]byte("no\n")) == nil {
		t.Error("a bad one is good")
	}
}

// TestWholeRun measures a little of everything with the real server: whether it fits together, not
// what comes out.
func TestWholeRun(t *testing.T) {
	if !rounds.Long() {
		t.Skip("measures a little of everything, in the long form")
	}
	t.Chdir("../..")
	dir := t.TempDir()
	var out bytes.Buffer
	status := part.Main([]part.Part{Part()},
		strings.Fields("tools -rounds 1 -conns 4 -depth 8 -warmup 10ms -window 50ms -starts 2 -server "+
			kit.Program(t, dir)+" -json "+dir), &out, &out)
	if status != 0 {
		t.Fatalf("status %d: %s", status, out.String())
	}
	var r goal.Report
	text, err := os.ReadFile(filepath.Join(dir, "tools.json"))
	if err := errors.Join(err, json.Unmarshal(text, &r)); err != nil {
		t.Fatal(err)
	}
	for _, g := range r.Goals {
		if g.Verdict == goal.None {
			t.Errorf("%s was not measured", g.What)
		}
	}
	if len(r.Goals) < 11 {
		t.Errorf("%d goals: %s", len(r.Goals), out.String())
	}
	if status := part.Main([]part.Part{Part()}, strings.Fields("tools -depth 257 -server "+os.Args[0]), &out, &out); status == 0 {
		t.Error("more in flight than a pipe holds")
	}
}
