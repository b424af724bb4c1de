package node

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"trunkline/fuzz/kit"
)

var journal = jetstream.StreamConfig{Name: "JOURNAL", Subjects: []string{"journal.>"}, Replicas: 3, Storage: jetstream.FileStorage}

func streams(n *Node) jetstream.JetStream {
	js, err := jetstream.New(n.Conn())
	if err != nil {
		panic(err)
	}
	return js
}

// publish appends one message, again until it is acknowledged.
func publish(t *testing.T, n *Node, text string) {
	t.Helper()
	until(t, "an acknowledgement of "+text, func() (error, bool) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := streams(n).Publish(ctx, "journal.x", []byte(text), jetstream.WithRetryAttempts(0), jetstream.WithMsgID(text))
		return err, err == nil
	})
}

// create makes the stream, again until the cluster has.
func create(t *testing.T, n *Node) {
	t.Helper()
	until(t, "a stream", func() (error, bool) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := streams(n).CreateOrUpdateStream(ctx, journal)
		return err, err == nil
	})
}

// messages returns how many the stream has.
func messages(t *testing.T, n *Node) uint64 {
	t.Helper()
	return until(t, "the stream", func() (uint64, bool) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		s, err := streams(n).Stream(ctx, journal.Name)
		if err != nil {
			return 0, false
		}
		return s.CachedInfo().State.Msgs, true
	})
}

func TestThreeNodes(t *testing.T) {
	t.Parallel()
	r := cluster(t, nil)
	create(t, r.open["a"])
	for id, n := range r.open {
		publish(t, n, "from "+id)
	}
	for id, n := range r.open {
		if got := messages(t, n); got != 3 {
			t.Errorf("node %s sees %d messages, want 3", id, got)
		}
		h := r.until(id, "all peers seen", func(h Health) bool { return h.Current && h.Peers[0].Seen && h.Peers[1].Seen && h.StoreBytes > 0 })
		if !h.Connected || !h.Quorum || !h.Current || h.Leader == "" || h.Cluster != "prod" || h.Node != id || h.Problem != "" || len(h.Peers) != 2 || h.StoreLimit <= h.StoreBytes {
			t.Errorf("%+v", h)
		}
		if n.Conn().MaxPayload() != maxPayload {
			t.Errorf("messages of %d bytes", n.Conn().MaxPayload())
		}
	}
	leaders := make(map[string]bool)
	for id := range r.open {
		leaders[r.open[id].Health(t.Context()).Leader] = true
	}
	if len(leaders) != 1 {
		t.Errorf("leaders %v", leaders)
	}
}

// TestNotes: a note comes to all nodes that hear, its sender included, up to the longest one.
func TestNotes(t *testing.T) {
	t.Parallel()
	r := cluster(t, nil)
	heard := make(chan string, 64)
	for id, n := range r.open {
		err := n.Hear("prod_0.nodes", func(note []byte) {
			select {
			case heard <- fmt.Sprint(id, " ", len(note), " ", string(note[:1])):
			default: // sent more often than it is needed
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := r.open["a"].Send("prod_0.nodes", make([]byte, maxNote+1)); err == nil {
		t.Error("a note is too long, and sent")
	}
	long := bytes.Repeat([]byte("x"), maxNote+1)
	if err := r.open["a"].conn.Publish("prod_0.nodes", long); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, id := range []string{"a", "b", "c"} {
		want[fmt.Sprint(id, " ", maxNote, " x")] = true
	}
	until(t, "all hear it", func() (int, bool) { // who hears is known to other servers after a moment
		if err := r.open["a"].Send("prod_0.nodes", long[:maxNote]); err != nil {
			t.Fatal(err)
		}
		for {
			select {
			case got := <-heard:
				if !strings.HasSuffix(got, fmt.Sprint(" ", maxNote, " x")) {
					t.Fatal(got)
				}
				delete(want, got)
				continue
			default:
			}
			return len(want), len(want) == 0
		}
	})
}

func TestTheServerSyncsEachWrite(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.start("a")
	v, err := r.open["a"].server.(*embedded).server.Varz(nil)
	if err != nil || !v.JetStream.Config.SyncAlways {
		t.Errorf("%+v, %v", v.JetStream.Config, err)
	}
}

func TestALateNodeCatchesUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.start("a", "b")
	r.until("a", "b seen", func(h Health) bool { return h.Peers[0].Seen })
	if text := lacking(t, r.open["a"], time.Second); !strings.Contains(text, "a new cluster begins when all of its nodes are there (not c)") {
		t.Error(text)
	}
	r.start("c")
	r.join("a", "b", "c")
	create(t, r.open["c"])
	r.stop("c")
	h := r.until("a", "c missing", func(h Health) bool { return h.Quorum && !h.Peers[1].Seen })
	if h.Peers[1].Node != "c" || !h.Peers[0].Seen || h.Problem == "" {
		t.Errorf("%+v", h)
	}
	publish(t, r.open["a"], "without c")
	r.start("c")
	r.join("c")
	r.until("a", "c seen, and up to date", func(h Health) bool { return h.Peers[1].Seen && h.Peers[1].Lag == 0 })
	if got := messages(t, r.open["c"]); got != 1 {
		t.Errorf("%d messages", got)
	}
}

func TestOneNodeAloneHasNoQuorum(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.start("a")
	text := lacking(t, r.open["a"], time.Second)
	for _, want := range []string{`cannot join cluster "prod"`, "no majority of the nodes is seen (not b, c)", "connection refused"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	r.start("b", "c")
	r.join("a", "b", "c")
	r.stop("b")
	r.stop("c")
	h := r.until("a", "no quorum", func(h Health) bool { return !h.Quorum })
	if h.Current {
		t.Errorf("current without a quorum: %+v", h)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := streams(r.open["a"]).CreateStream(ctx, journal); err == nil {
		t.Error("a stream was made without a quorum")
	}
	r.start("b", "c")
	r.join("a", "b", "c")
}

func TestALeaderHandsOverBeforeItStops(t *testing.T) {
	if testing.Short() {
		t.Skip("an election takes its time with long timers")
	}
	// Followers would wait longer than this test does.
	const wait = 3 * time.Minute
	r := newRig(t, func(c *Config) { c.ElectionTimeout = wait })
	r.start("a", "b", "c")
	// The first election is after a fifth of the timeout at most.
	r.join("a", "b", "c")
	leader := r.open["a"].Health(t.Context()).Leader
	r.stop(leader)
	for id := range r.open {
		r.until(id, "another leader", func(h Health) bool { return h.Quorum && h.Leader != leader })
	}
}

// TestStrangersStayOut: a node of the list that cannot prove itself neither gets in nor hurts.
func TestStrangersStayOut(t *testing.T) {
	t.Parallel()
	const other = "another secret of its own, and longer"
	if testing.Short() {
		t.Skip("it starts five clusters")
	}
	authority, stranger := newAuthority(t), newAuthority(t)
	secured := func(c *Config) {
		if c.Secret = ""; c.TLS == nil {
			c.TLS = authority.node(t)
		}
	}
	f := func(name string, all, wrong func(*Config)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := cluster(t, all)
			create(t, r.open["a"])
			r.stop("c")
			r.change = func(c *Config) {
				wrong(c)
				all(c)
			}
			r.start("c")
			r.change = all
			r.until("c", "refused", func(h Health) bool {
				return strings.Contains(h.Problem, "no majority of the nodes is seen (not a, b)") && strings.Contains(r.log.String(), "handshake error")
			})
			publish(t, r.open["a"], "without c")
			if h := r.open["c"].Health(t.Context()); h.Quorum || h.Current {
				t.Errorf("it is in: %+v", h)
			}
			h := r.until("a", "a quorum without c", func(h Health) bool { return h.Quorum && !h.Peers[1].Seen })
			if h.Peers[1].Node != "c" {
				t.Errorf("%+v", h)
			}
			r.stop("c")
			r.start("c")
			r.join("c")
			if got := r.log.String(); strings.Contains(got, other) {
				t.Error("a secret is in the log")
			}
		})
	}
	nothing := func(*Config) {}
	f("another secret", nothing, func(c *Config) { c.Secret = other })
	f("no secret", nothing, func(c *Config) { c.Secret = "" })
	f("a certificate of others", secured, func(c *Config) { c.TLS = stranger.node(t) })
	f("a certificate that none asks others for", secured, func(c *Config) {
		c.TLS = stranger.node(t)
		c.TLS.RootCAs, c.TLS.ClientCAs = authority.pool, authority.pool
	})
	f("an old certificate", secured, func(c *Config) { c.TLS = authority.expired(t) })
}

func TestCloseBeforeAnyQuorum(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.start("a")
	n := r.open["a"]
	r.stop("a")
	if err := n.Close(t.Context()); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if h := n.Health(t.Context()); h.Connected || h.Quorum || h.Problem == "" {
		t.Errorf("%+v", h)
	}
	r.start("a") // the directory and the address are free again
}

func TestCloseWithoutTime(t *testing.T) {
	t.Parallel()
	r := cluster(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for id, n := range r.open {
		if err := n.Close(ctx); err != nil && !strings.Contains(err.Error(), "context canceled") {
			t.Errorf("node %s: %v", id, err)
		}
	}
	clear(r.open)
}

func TestAnAddressInUse(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.config("a")
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		t.Fatal(err)
	}
	go func() { // what answers there is no server
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	n, err := Start(t.Context(), c)
	if err == nil {
		t.Fatal(n.Close(t.Context()))
	}
	if !strings.Contains(err.Error(), "in use") {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r.start("a")
}

func TestDirectoriesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	f := func(want string, prepare func(dir string) string) {
		t.Helper()
		c := r.config("a")
		c.Dir = prepare(t.TempDir())
		n, err := Start(t.Context(), c)
		if err == nil {
			t.Fatal(n.Close(t.Context()))
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	file := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f("not a directory", func(dir string) string {
		file(filepath.Join(dir, "f"), "")
		return filepath.Join(dir, "f", "d")
	})
	f("JetStream", func(dir string) string {
		text := `{"format":1,"cluster":"prod","node":"a","partitions":2}`
		file(filepath.Join(dir, identityFile), text)
		file(filepath.Join(dir, storeDir), "a file where the server wants a directory")
		return dir
	})
	f(`cluster "test"`, func(dir string) string {
		file(filepath.Join(dir, identityFile), `{"format":1,"cluster":"test","node":"a","partitions":2}`)
		return dir
	})
	if os.Geteuid() != 0 {
		f("permission denied", func(dir string) string {
			if err := os.Chmod(dir, 0o500); err != nil {
				t.Fatal(err)
			}
			return dir
		})
	}
}

func TestNodesWithAnotherNumberOfPartitions(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) {
		if c.Node == "c" {
			c.Partitions = 3
		}
	})
	r.start("a", "b", "c")
	text := lacking(t, r.open["c"], patience)
	if !strings.Contains(text, "partitions, here there are 3") {
		t.Error(text)
	}
}

func TestNodesWithOtherTimers(t *testing.T) {
	mine := Config{ElectionTimeout: time.Second, Partitions: 2}
	f := func(election, partitions, want string) {
		t.Helper()
		var s serverState
		s.Server.Name = "b"
		s.Server.Metadata = map[string]string{metaElection: election, metaPartitions: partitions}
		err := mine.agrees([]serverState{s})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	f("1s", "2", "")
	f("2s", "2", `node "b": its election timeout is 2s, here it is 1s`)
	f("", "2", "election timeout")
	f("1s", "3", `node "b": it has 3 partitions, here there are 2`)
}

// TestNodesWithAnotherList: one of a former version does not show its list.
func TestNodesWithAnotherList(t *testing.T) {
	mine := Config{Routes: []Route{{"b", "1"}, {"a", "2"}}}
	f := func(want string, nodes ...string) {
		t.Helper()
		var s serverState
		s.Server.Name = "b"
		s.Server.Metadata = map[string]string{metaElection: "0s", metaPartitions: "0"}
		for _, list := range nodes {
			s.Server.Metadata[metaNodes] = list
		}
		err := mine.agrees([]serverState{s})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	f("")
	f("", "a,b")
	f(`node "b": its list of routes has a,b,c, here it has a,b`, "a,b,c")
	f("its list of routes has , here", "")
}

func TestHealthSorts(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	slices.Reverse(r.routes)
	r.start("b")
	h := r.open["b"].Health(t.Context())
	if len(h.Peers) != 2 || h.Peers[0].Node != "a" || h.Peers[1].Node != "c" {
		t.Errorf("%+v", h.Peers)
	}
}

// TestAServerThatGaveUpItsDisk: a full disk has the library stop its streams and go on without.
func TestAServerThatGaveUpItsDisk(t *testing.T) {
	t.Parallel()
	r := cluster(t, nil)
	s := r.open["c"].server.(*embedded).server
	if err := s.ShutdownJetStream(); err != nil {
		t.Fatal(err)
	}
	h := r.open["c"].Health(t.Context())
	if h.Connected || h.Quorum || h.Current || h.Problem == "" {
		t.Errorf("%+v", h)
	}
	r.until("a", "a quorum of the others", func(h Health) bool { return h.Quorum && h.Leader != "c" })
	r.stop("c")
	r.start("c")
	r.join("c")
}

func TestAFullNode(t *testing.T) {
	f := func(bytes, limit uint64, want bool) {
		t.Helper()
		h := Health{StoreBytes: bytes, StoreLimit: limit}
		if h.full() != want {
			t.Errorf("%d of %d bytes: %v", bytes, limit, !want)
		}
	}
	f(1, 0, false)
	f(7, 7, false)
	f(8, 7, true)
}

// TestANodeThatIsNotOfTheList stays out: as a voter it would have the others need a larger
// majority, also when it is gone.
func TestANodeThatIsNotOfTheList(t *testing.T) {
	t.Parallel()
	r := cluster(t, nil)
	r.dirs["d"] = t.TempDir()
	r.routes = append(slices.Clone(r.routes), Route{"d", kit.Reserve(t)})
	r.start("d")
	r.until("d", "refused by all", func(Health) bool {
		return strings.Count(r.log.String(), "it is not of the list of routes") >= 3
	})
	if h := r.open["d"].Health(t.Context()); h.Quorum {
		t.Errorf("it is in: %+v", h)
	}
	r.stop("d")
	r.stop("c")
	for _, id := range []string{"a", "b"} {
		r.until(id, "a majority of three", func(h Health) bool { return h.Quorum && len(h.Peers) == 2 && !h.Peers[1].Seen })
	}
}

// TestATwinWithAnotherAddress: the others know where the node with that id is.
func TestATwinWithAnotherAddress(t *testing.T) {
	t.Parallel()
	r := cluster(t, nil)
	create(t, r.open["a"])
	twin := r.config("b")
	twin.Routes = slices.Clone(twin.Routes)
	twin.Listen, twin.Dir = kit.Reserve(t), t.TempDir()
	twin.Routes[1].Addr = twin.Listen
	n, err := Start(t.Context(), twin)
	if err != nil {
		t.Fatal(err)
	}
	r.open["twin"] = n
	r.until("twin", "refused by all", func(Health) bool {
		return strings.Count(r.log.String(), "another process answers at the address of the node") >= 2
	})
	if h := n.Health(t.Context()); h.Quorum {
		t.Errorf("it is in: %+v", h)
	}
	publish(t, r.open["a"], "without the twin")
}

// TestTwoNodesWithOneIDThatStartAtATime find each other when they join.
func TestTwoNodesWithOneIDThatStartAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	twin := r.config("b")
	twin.Node = "a"
	if err := twin.secure(); err != nil {
		t.Fatal(err)
	}
	r.start("c")
	second, err := twin.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := second.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	first, err := func() (*Node, error) {
		c := r.config("a")
		if err := c.secure(); err != nil {
			return nil, err
		}
		return c.begin(t.Context())
	}()
	if err != nil {
		t.Fatal(err)
	}
	r.open["a"] = first
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, n := range []*Node{first, second, r.open["c"]} {
		if err := n.AwaitQuorum(ctx); err == nil {
			t.Error("two nodes with one id are in a cluster")
		}
	}
}
