package conformance

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/fuzz/kit"
)

func TestUnixSocketFile(t *testing.T) {
	root := newDir(t)
	srv := serve(t, unix, root, nil, "--serve", "builtin")
	st, err := os.Lstat(srv.addr)
	if err != nil || st.Mode().Perm() != 0o600 || st.Mode().Type() != fs.ModeSocket {
		t.Errorf("%v, %v, want a socket of mode 0600", st, err)
	}
	// One that is in use is not taken over.
	second := &server{over: unix, talk: new(kit.Text), gone: make(chan struct{})}
	second.launch(t, root, nil, []string{"--serve", "builtin", "--listen", "unix://" + srv.addr})
	if code := second.exit(5 * time.Second); code <= 0 {
		t.Errorf("a second server on the same socket: exit code %d, want a failure", code)
	}
	c := srv.dial(t)
	say1(c, `{"aid":"AID.NOOP.v1"}`)
	want(t, c, nop)

	// A stale one is replaced.
	srv.cmd.Process.Kill()
	srv.exit(patience)
	third := &server{over: unix, talk: new(kit.Text), gone: make(chan struct{}), addr: srv.addr}
	if _, err := os.Lstat(srv.addr); err != nil {
		t.Fatalf("no stale socket to replace: %v", err)
	}
	third.launch(t, root, nil, []string{"--serve", "builtin", "--listen", "unix://" + srv.addr})
	third.awaitListener(t)
	c = third.dial(t)
	say1(c, `{"aid":"AID.NOOP.v1"}`)
	want(t, c, nop)
}

// TestSeveralListeners serves both kinds of sockets from one process, and the standard streams with
// --stdin.
func TestSeveralListeners(t *testing.T) {
	sock := filepath.Join(newDir(t), "s")
	srv := serve(t, tcp, newDir(t), nil, "--serve", "builtin", "--stdin", "--listen", "unix://"+sock)
	for _, c := range []*stream{srv.dial(t), srv.io, connStream(mustDial(t, "unix", sock))} {
		say1(c, `{"aid":"AID.NOOP.v1"}`)
		want(t, c, nop)
	}
	// Leases are enforced where nothing states otherwise: on TCP only (D22).
	for i, c := range []*stream{srv.dial(t), srv.io, connStream(mustDial(t, "unix", sock))} {
		say1(c, `{"aid":"AID.MEMORY.APPEND.v1","inputs":{"text":"x"}}`)
		if got := c.next(patience); strings.Contains(got, `"lease_required"`) != (i == 0) {
			t.Errorf("listener %d: %s", i, got)
		}
	}
}

// TestOtherHostsNeedAToken: with one the server starts, and asks for it.
func TestOtherHostsNeedAToken(t *testing.T) {
	srv := &server{over: tcp, talk: new(kit.Text), gone: make(chan struct{})}
	srv.launch(t, newDir(t), []string{"MACHINA_API_TOKEN=secret"}, []string{"--serve", "builtin", "--listen", "tcp://0.0.0.0:0"})
	port := regexp.MustCompile(`listening.*?:(\d+)`)
	for range 200 {
		if m := port.FindStringSubmatch(srv.talk.String()); m != nil {
			c := connStream(mustDial(t, "tcp", "127.0.0.1:"+m[1]))
			say1(c, `{"aid":"AID.NOOP.v1"}`)
			want(t, c, `{"ok":false,"error":"auth_required"}`)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("it does not listen: %s", srv.talk)
}

func mustDial(t testing.TB, network, addr string) net.Conn {
	t.Helper()
	nc, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}

// TestSIGTERMStopsAccepting: no one gets in any more while a tool runs.
func TestSIGTERMStopsAccepting(t *testing.T) {
	root := newDir(t)
	s := newScript(t, unix, "sigterm")
	s.root = root
	s.copyFiles([]string{"ext.json"})
	srv := serve(t, unix, root, nil, "--serve", "ext.json")
	c := srv.dial(t)
	say1(c, `{"aid":"AID.EXT.MANY.v1","inputs":{"ms":1500}}`)
	time.Sleep(300 * time.Millisecond)
	srv.term()
	time.Sleep(300 * time.Millisecond)
	if nc, err := net.Dial("unix", srv.addr); err == nil {
		late := connStream(nc)
		say1(late, `{"aid":"AID.NOOP.v1"}`)
		if got := late.next(patience); got != ended && !strings.Contains(got, `"shutting_down"`) {
			t.Errorf("a connection after SIGTERM: %s", got)
		}
	}
	want(t, c, nop)
	want(t, c, ended)
	if code := srv.exit(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestTooManyConnections: 4,096 are served, the next one is informed.
func TestTooManyConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("opens 4,097 connections")
	}
	const most = 4096
	var lim syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim) != nil || lim.Max < 2*most {
		t.Skip("too few descriptors")
	}
	lim.Cur = lim.Max
	syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lim)
	srv := serve(t, unix, newDir(t), nil, "--serve", "builtin")
	time.Sleep(200 * time.Millisecond) // the dial that found the listener is gone by then
	for i := range most {
		nc := mustDial(t, "unix", srv.addr)
		if i%512 == 511 { // lets the accept queue run dry
			c := connStream(nc)
			say1(c, `{"aid":"AID.NOOP.v1"}`)
			want(t, c, nop)
		}
	}
	c := connStream(mustDial(t, "unix", srv.addr))
	want(t, c, `{"ok":false,"error":"too many connections"}`)
	want(t, c, ended)
}

// TestLeasesAreUsedOnce lets many connections race for one token.
func TestLeasesAreUsedOnce(t *testing.T) {
	srv := serve(t, unix, newDir(t), []string{"MACHINA_LEASE_ENFORCE=1", "MACHINA_OPERATOR_TOKEN=op"}, "--serve", "builtin")
	op := srv.dial(t)
	const racers, rounds = 8, 20
	var conns []*stream
	for range racers {
		conns = append(conns, srv.dial(t))
	}
	for range rounds {
		say1(op, `{"aid":"_lease.issue","tool_aid":"*","tier":3,"_operator_token":"op"}`)
		_, token, _ := strings.Cut(op.next(patience), `"token_id":"`)
		token, _, _ = strings.Cut(token, `"`)
		won := 0
		for _, c := range conns {
			say1(c, `{"aid":"AID.MEMORY.APPEND.v1","inputs":{"text":"x"},"_lease_token":"`+token+`"}`)
		}
		for _, c := range conns {
			switch got := c.next(patience); {
			case strings.HasPrefix(got, `{"ok":true,`):
				won++
			case got != `{"ok":false,"error":"lease_rejected","reason":"already consumed"}`:
				t.Fatalf("got %s", got)
			}
		}
		if won != 1 {
			t.Fatalf("%d of %d used one token", won, racers)
		}
	}
	say1(op, `{"aid":"_lease.gc","_operator_token":"op"}`)
	want(t, op, fmt.Sprintf(`{"ok":true,"active":0,"issued":%d,"consumed":%d,"rejected":%d}`, rounds, rounds, rounds*(racers-1)))
}

func TestLiveTokensAreBounded(t *testing.T) {
	c := serve(t, stdio, newDir(t), nil, "--serve", "builtin").dial(t)
	const most = 4096
	c.send([]byte(strings.Repeat(`{"aid":"_lease.issue","tool_aid":"*","tier":1,"ttl_ms":300000}`+"\n", most+1)))
	for i := range most {
		if got := c.next(patience); !strings.HasPrefix(got, `{"ok":true,"token_id":"lease_`) {
			t.Fatalf("token %d: %s", i, got)
		}
	}
	want(t, c, `{"ok":false,"error":"lease_limit"}`)
	say1(c, `{"aid":"_lease.gc"}`)
	want(t, c, `{"ok":true,"active":4096,"issued":4096,"consumed":0,"rejected":0}`)
}
