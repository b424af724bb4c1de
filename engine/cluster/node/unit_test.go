package node

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

func TestTimersAreThoseOfTheLibrary(t *testing.T) {
	if err := holdTimers(0); err != nil {
		t.Fatal(err)
	}
	defer releaseTimers()
	for name, d := range map[string][2]time.Duration{
		"minElectionTimeout": {minElectionTimeout, 4 * time.Second}, "maxElectionTimeout": {maxElectionTimeout, 9 * time.Second},
		"minCampaignTimeout": {minCampaignTimeout, 100 * time.Millisecond}, "maxCampaignTimeout": {maxCampaignTimeout, 800 * time.Millisecond},
		"hbInterval": {hbInterval, time.Second}, "lostQuorumInterval": {lostQuorumInterval, 10 * time.Second}, "lostQuorumCheck": {lostQuorumCheck, 10 * time.Second},
	} {
		if d[0] != d[1] {
			t.Errorf("%s is %v, want %v", name, d[0], d[1])
		}
	}
}

// TestAnotherLibrary: what a version of the library does not have any more is left as it is.
func TestAnotherLibrary(t *testing.T) {
	if !hasTimers {
		t.Error("this version does not have the timers")
	}
	hasTimers = false
	defer func() { hasTimers = true }()
	before := minElectionTimeout
	if err := holdTimers(before + testElection); err != nil || minElectionTimeout != before {
		t.Errorf("%v, %v became %v", err, before, minElectionTimeout)
	}
	releaseTimers()
	for _, s := range []any{&struct{}{}, &struct{ listener string }{}} {
		if unused, ok := withoutClients(s); ok {
			t.Errorf("%T takes a listener", s)
		} else {
			unused()
		}
	}
	if _, ok := withoutClients(new(server.Server)); !ok {
		t.Error("this version does not take a listener")
	}
}

func TestTimersChangeWhileNoServerRuns(t *testing.T) {
	if err := holdTimers(testElection); err != nil {
		t.Fatal(err)
	}
	if minElectionTimeout != testElection || hbInterval != testElection/4 || maxElectionTimeout != testElection*9/4 || maxCampaignTimeout != testElection/5 {
		t.Errorf("%v %v %v %v", minElectionTimeout, hbInterval, maxElectionTimeout, maxCampaignTimeout)
	}
	if err := holdTimers(2 * testElection); err == nil {
		t.Error("they changed under a server that runs")
	}
	if err := holdTimers(testElection); err != nil {
		t.Errorf("the same again: %v", err)
	}
	releaseTimers()
	releaseTimers()
	if err := holdTimers(2 * testElection); err != nil {
		t.Error(err)
	}
	releaseTimers()
}

func TestOneProcessHasADirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "dir")
	want := identity{identityFormat, "prod", "a", 2, "a,b,c"}
	first, err := takeDirectory(dir, want)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := takeDirectory(dir, want); err == nil || !strings.Contains(err.Error(), "another process uses it") {
		t.Fatal(f, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	f := func(ask identity, text string) {
		t.Helper()
		file, err := takeDirectory(dir, ask)
		if text == "" {
			if err != nil {
				t.Fatal(err)
			}
			_ = file.Close()
			return
		}
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	f(want, "")
	f(identity{identityFormat, "test", "a", 2, "a,b,c"}, `cluster "prod", not to "test"`)
	f(identity{identityFormat, "prod", "b", 2, "a,b,c"}, `node "a", not to "b"`)
	f(identity{identityFormat, "prod", "a", 3, "a,b,c"}, "made with 2 partitions, not 3")
	f(identity{identityFormat + 1, "prod", "a", 2, "a,b,c"}, "format 1, this program reads 2")
	f(identity{identityFormat, "prod", "a", 2, "a,b,c,d"}, "made with the nodes a,b,c, not a,b,c,d; cluster.routes cannot change")
	f(identity{identityFormat, "prod", "a", 2, "a,b,d"}, "made with the nodes a,b,c, not a,b,d")
	f(want, "") // none of them changed it

	former := identity{identityFormat, "prod", "a", 2, ""}
	text, err := json.Marshal(former)
	if err != nil {
		t.Fatal(err)
	}
	if err = os.WriteFile(filepath.Join(dir, identityFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
	f(identity{identityFormat, "prod", "a", 3, "a,b,c,d"}, "made with 2 partitions, not 3")
	f(want, "") // which is written down
	f(identity{identityFormat, "prod", "a", 2, "a,b,c,d"}, "made with the nodes a,b,c")
}

// TestAnIdentityThatWasNotWrittenToItsEnd: a crash may leave one, before a server was started.
func TestAnIdentityThatWasNotWrittenToItsEnd(t *testing.T) {
	want := identity{identityFormat, "prod", "a", 2, "a,b,c"}
	for _, text := range []string{"", `{"format":1,"clu`, "\x00\x00\x00", strings.Repeat(" ", maxIdentity+1)} {
		dir := t.TempDir()
		name := filepath.Join(dir, identityFile)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, storeDir), 0o700); err != nil {
			t.Fatal(err)
		}
		if f, err := takeDirectory(dir, want); err == nil || !strings.Contains(err.Error(), "with files of a server") {
			t.Fatal(f, err)
		}
		if err := os.Remove(filepath.Join(dir, storeDir)); err != nil {
			t.Fatal(err)
		}
		f, err := takeDirectory(dir, want)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		_ = f.Close()
		if f, err = takeDirectory(dir, want); err != nil {
			t.Fatalf("%q, the second time: %v", text, err)
		}
		_ = f.Close()
	}
}

func TestLogOfAServer(t *testing.T) {
	var out bytes.Buffer
	l := newServerLog(slog.New(slog.NewTextHandler(&out, nil)))
	l.Noticef("a notice")
	l.Debugf("a detail")
	l.Tracef("a detail")
	l.Warnf("a warning %d", 1)
	if got := out.String(); strings.Contains(got, "notice") || strings.Contains(got, "detail") || !strings.Contains(got, "a warning 1") {
		t.Error(got)
	}
	if l.latest(time.Hour) != "" || l.failure() != "" {
		t.Error("a warning is no error")
	}
	for i := range 10 * logBurst {
		l.Errorf("error %d", i)
	}
	if n := strings.Count(out.String(), "\n"); n > 2*logBurst {
		t.Errorf("%d lines of a flood", n)
	}
	if got := l.latest(time.Hour); got != "error 199" {
		t.Errorf("the latest is %q", got)
	}
	if got := l.latest(0); got != "" {
		t.Errorf("%q is not old", got)
	}
	l.Fatalf("first")
	l.Fatalf("second")
	l.Errorf("JetStream out of space, will be DISABLED")
	l.Errorf("second")
	if l.failure() != "first" || l.latest(time.Hour) != "second" {
		t.Error(l.failure(), l.latest(time.Hour))
	}
	if l.Errorf("%s", strings.Repeat("x", maxLogLine+1)); len(l.latest(time.Hour)) != maxLogLine {
		t.Errorf("a line of %d bytes", len(l.latest(time.Hour)))
	}
}

// TestLogOfANodeThatIsDown is one warning a minute, and hides nothing else.
func TestLogOfANodeThatIsDown(t *testing.T) {
	var out bytes.Buffer
	l := newServerLog(slog.New(slog.NewTextHandler(&out, nil)))
	for i := range logBurst {
		l.Errorf("Error trying to connect to route (attempt %v): %v", i, "refused")
	}
	l.Errorf("another error")
	got := out.String()
	if strings.Count(got, "connect to route") != 1 || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "another error") {
		t.Error(got)
	}
}

// answers listens until the test ends and has f answer each connection.
func answers(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f(c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

func TestWhoAnswersAtARoute(t *testing.T) {
	f := func(greeting, want string) {
		t.Helper()
		at := answers(t, func(c net.Conn) {
			for _, b := range []byte(greeting) { // one byte at a time
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
			}
		})
		cfg := &Config{Cluster: "prod", Node: "a", Routes: []Route{{"a", "127.0.0.1:1"}, {"b", at}}}
		err := cfg.probe(t.Context(), "S1")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", greeting, err, want)
		}
	}
	f(`INFO {"server_name":"b","cluster":"prod"}`+"\r\n", "")
	f(`INFO {"server_name":"a","cluster":"prod"}`+"\r\n", `a node "a" answers at`)
	f(`INFO {"server_name":"c","cluster":"prod"}`+"\r\n", `is "c", not "b"`)
	f(`INFO {"server_name":"b","cluster":"test"}`+"\r\n", `cluster "test"`)
	f(`INFO {"server_id":"S1","server_name":"a","cluster":"prod"}`+"\r\n", "") // itself
	f(`INFO {"server_id":"S2","server_name":"a","cluster":"prod"}`+"\r\n", `a node "a" answers at`)
	f("", "")
	f("SSH-2.0\r\n", "")
	f("INFO {", "")
	f("INFO []\r\n", "")
}

// TestARouteThatNeverAnswers: who is silent does not hold up a start for ever.
func TestARouteThatNeverAnswers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	at := answers(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	got, err := Probe(ctx, Config{Cluster: "prod", Node: "a", Routes: []Route{{"b", at}}})
	if err != nil || len(got) != 1 || got[0].Node != "b" || got[0].Unreachable == nil || got[0].Refused != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestGreetingsAreBounded(t *testing.T) {
	f := func(n int, ok bool) {
		t.Helper()
		line := `INFO {"server_name":"b"` + strings.Repeat(" ", n-len(`INFO {"server_name":"b"`+"}\n")) + "}\n"
		g, err := readGreeting(bufio.NewReaderSize(strings.NewReader(line), maxGreeting))
		if (err == nil && g.Node == "b") != ok {
			t.Errorf("%d bytes: %+v, %v", n, g, err)
		}
	}
	f(maxGreeting, true)
	f(maxGreeting+1, false)
}

func FuzzGreeting(f *testing.F) {
	f.Add([]byte(`INFO {"server_name":"b","cluster":"prod"}` + "\r\n"))
	f.Add([]byte("INFO \n"))
	f.Add([]byte("-ERR 'x'\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := readGreeting(bufio.NewReaderSize(bytes.NewReader(text), maxGreeting))
		if err == nil && (!bytes.HasPrefix(text, []byte("INFO ")) || !bytes.Contains(text, []byte("\n"))) {
			t.Errorf("%q was taken for %+v", text, g)
		}
	})
}

func TestIdentification(t *testing.T) {
	f := func(text string, some, plain, ok bool) {
		t.Helper()
		o, p, err := identification(text)
		if (o != nil) != some || p != plain || (err == nil) != ok {
			t.Errorf("%q: %v, %v, %v", text, o != nil, p, err)
		}
		if err != nil && strings.Contains(err.Error(), strings.TrimSpace(text)) {
			t.Errorf("%q is in %v", text, err)
		}
	}
	const seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY" // of an example of the library
	f("", false, false, true)
	f(" \n", false, false, true)
	f("me:hunter2\n", true, true, true)
	f("me:hunter2:and:more", true, true, true)
	f(seed, true, false, true)
	f("-----BEGIN NATS USER JWT-----\nx\n------END NATS USER JWT------\n", true, false, true)
	f("hunter2", false, false, false)
	f("SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VX", false, false, false)
	f("a:b\nc", false, false, false)
}

func TestAPasswordStaysHidden(t *testing.T) {
	f := func(address string, want bool) {
		t.Helper()
		if got := hidden(address); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	f("nats://127.0.0.1:4222", true)
	f("nats://[::1]:4222", true)
	f("nats://localhost", true)
	f("tls://db.example:4222", true)
	f("nats://db.example:4222", false)
	f("nats://10.0.0.1", false)
	f("nats://localhost.example", false)
	f("%", false)
}

func TestVersions(t *testing.T) {
	f := func(v string, old bool) {
		t.Helper()
		if older(v) != old {
			t.Errorf("%q: %v", v, !old)
		}
	}
	f("2.15.0", false)
	f("2.15.2", false)
	f("2.16.0-RC.1", false)
	f("3.0.0", false)
	f("2.15.0-RC.3", true)
	f("2.14.9", true)
	f("2.9.0", true)
	f("", true)
	f("two", true)
}

func FuzzIdentity(f *testing.F) {
	f.Add([]byte(`{"format":1,"cluster":"prod","node":"a","partitions":2}`))
	f.Add([]byte(`{"format":1,"cluster":"prod","node":"a","partitions":2,"nodes":"a,b"}`))
	f.Add([]byte(`{"format":1,"cluster":"prod"`))
	f.Add([]byte("null"))
	want := identity{identityFormat, "prod", "a", 2, "a,b,c"}
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		for name, what := range map[string][]byte{identityFile: text, storeDir: nil} {
			if err := os.WriteFile(filepath.Join(dir, name), what, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		file, err := takeDirectory(dir, want)
		if err != nil {
			return
		}
		_ = file.Close()
		var has identity
		err = json.Unmarshal(text, &has)
		has.Nodes = cmp.Or(has.Nodes, want.Nodes)
		if err != nil || has != want {
			t.Errorf("%q was taken for that of this node", text)
		}
	})
}

// FuzzAnswersOfServers: servers of an operator may be of any version.
func FuzzAnswersOfServers(f *testing.F) {
	f.Add([]byte(`{"server":{"name":"n1","ver":"2.15.2"},"data":{"jetstream":{"config":{"sync_always":true},"meta":{"leader":"n1","cluster_size":3,"replicas":[{"name":"n2","lag":1}]}}}}`))
	f.Add([]byte(`{"server":{"name":"n1"},"data":{"jetstream":{"config":{},"meta":{"leader":"n1","replicas":[null]}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var a serverState
		if json.Unmarshal(text, &a) != nil {
			return
		}
		s := summarize([]serverState{a, a})
		e := &external{cfg: Servers{Logger: slog.New(slog.DiscardHandler)}}
		if js := a.Data.JetStream.Config; s.complete(1) == nil && e.accept(s) == nil && (js == nil || !js.SyncAlways) {
			t.Errorf("%s was accepted", text)
		}
	})
}
