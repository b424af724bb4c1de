package node

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"trunkline/fuzz/kit"
)

// operated is the servers of an operator, with a user of an account for streams, and one of the
// system account.
type operated struct {
	t       *testing.T
	servers []*server.Server
	urls    []string
}

// operate starts servers, each with the options that change leaves.
func operate(t *testing.T, size int, change func(i int, o *server.Options)) *operated {
	t.Helper()
	if err := holdTimers(testElection); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(releaseTimers)
	f := &operated{t: t}
	var routes []*url.URL
	for range size {
		routes = append(routes, &url.URL{Scheme: "nats-route", Host: kit.Reserve(t)})
	}
	for i := range size {
		sys := server.NewAccount(server.DEFAULT_SYSTEM_ACCOUNT)
		o := &server.Options{
			ServerName: "nats" + string(rune('1'+i)), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
			Accounts: []*server.Account{sys}, SystemAccount: sys.Name,
			Users:     []*server.User{{Username: "app", Password: "app password"}, {Username: "sys", Password: "sys password", Account: sys}},
			JetStream: true, StoreDir: t.TempDir(), SyncAlways: true,
		}
		if size > 1 {
			u := routes[i]
			o.Cluster = server.ClusterOpts{Name: "theirs", Host: "127.0.0.1", Port: number(t, u.Port()), PoolSize: 1}
			o.Routes = routes
		}
		if change != nil {
			change(i, o)
		}
		s, err := server.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() {
			s.Shutdown()
			s.WaitForShutdown()
		})
		if !s.ReadyForConnections(patience) {
			t.Fatal("a server does not listen")
		}
		f.servers = append(f.servers, s)
		f.urls = append(f.urls, s.ClientURL())
	}
	return f
}

func number(t *testing.T, text string) (n int) {
	t.Helper()
	for _, c := range text {
		n = 10*n + int(c-'0')
	}
	return n
}

func (f *operated) config(log *kit.Text) Servers {
	return Servers{
		Cluster: "prod", Node: "a", URLs: f.urls, Credentials: "app:app password", System: "sys:sys password", Replicas: 3,
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	}
}

// elect waits until the servers have a leader.
func (f *operated) elect() {
	f.t.Helper()
	until(f.t, "a leader of the servers", func() (int, bool) {
		n := 0
		for _, s := range f.servers {
			if s.Running() && s.JetStreamIsLeader() {
				n++
			}
		}
		return n, n == 1
	})
}

// refused returns why servers are refused.
func refused(t *testing.T, c Servers) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	n, err := Connect(ctx, c)
	if err == nil {
		t.Fatal("they were accepted", n.Close(ctx))
	}
	if strings.Contains(err.Error(), "password") && !strings.Contains(err.Error(), "user:password") && !strings.Contains(err.Error(), "a password is not sent") {
		t.Errorf("a password is in %v", err)
	}
	return err.Error()
}

func TestServersOfAnOperator(t *testing.T) {
	t.Parallel()
	f := operate(t, 3, nil)
	f.elect()
	log := new(kit.Text)
	n, err := Connect(t.Context(), f.config(log))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if err := n.AwaitQuorum(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := n.Health(t.Context())
	if !h.Connected || !h.Quorum || h.Leader == "" || len(h.Peers) != 3 || h.Problem != "" || h.Cluster != "prod" || h.Node != "a" {
		t.Errorf("%+v", h)
	}
	create(t, n)
	publish(t, n, "one")

	for _, s := range f.servers {
		if s.Name() == h.Leader {
			s.Shutdown()
			s.WaitForShutdown()
		}
	}
	gone := h.Leader
	h = until(t, "another leader", func() (Health, bool) {
		h := n.Health(t.Context())
		return h, h.Quorum && h.Leader != "" && h.Leader != gone
	})
	publish(t, n, "two")
	unseen := 0
	for _, p := range h.Peers {
		if !p.Seen {
			unseen++
		}
	}
	if len(h.Peers) != 3 || unseen != 1 {
		t.Errorf("%+v", h.Peers)
	}
	for _, s := range f.servers[:2] {
		s.Shutdown()
		s.WaitForShutdown()
	}
	for _, s := range f.servers {
		s.Shutdown()
		s.WaitForShutdown()
	}
	until(t, "no connection", func() (Health, bool) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		h := n.Health(ctx)
		return h, !h.Connected && !h.Quorum && strings.Contains(h.Problem, "no connection to a server")
	})
	got := until(t, "a line of the log", func() (string, bool) { // the client reports it beside
		got := log.String()
		return got, strings.Contains(got, "connection to the cluster is lost")
	})
	if strings.Contains(got, "password") {
		t.Error(got)
	}
}

func TestServersThatDoNotSyncAreRefused(t *testing.T) {
	t.Parallel()
	f := operate(t, 3, func(i int, o *server.Options) { o.SyncAlways = i != 1 })
	f.elect()
	log := new(kit.Text)
	if text := refused(t, f.config(log)); !strings.Contains(text, "before they sync it: nats2 (sync_interval: always)") {
		t.Error(text)
	}
	c := f.config(log)
	c.System = ""
	if text := refused(t, c); !strings.Contains(text, errUnseen.Error()) {
		t.Error(text)
	}
	accept := func(c Servers, want string) {
		t.Helper()
		c.AcceptLazySync = true
		n, err := Connect(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log: %s", want, log)
		}
	}
	accept(f.config(log), "before they sync it: nats2")
	accept(c, "cannot see whether")
}

func TestServersThatAreNotFit(t *testing.T) {
	t.Parallel()
	f := func(want string, size int, change func(int, *server.Options), ask func(*Servers)) {
		t.Helper()
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			o := operate(t, size, change)
			if size > 1 && change == nil {
				o.elect()
			}
			c := o.config(new(kit.Text))
			if ask != nil {
				ask(&c)
			}
			if text := refused(t, c); !strings.Contains(text, want) {
				t.Errorf("%q, want %q", text, want)
			}
		})
	}
	f("the largest message of the server", 1, func(_ int, o *server.Options) { o.MaxPayload = minPayload - 1 }, nil)
	f("they have no streams for this account", 1, func(_ int, o *server.Options) { o.JetStream = false }, nil)
	f("Authorization Violation", 1, nil, func(c *Servers) { c.Credentials = "app:wrong" })
	f("cannot connect to their system account", 1, nil, func(c *Servers) { c.System = "sys:wrong" })
	f("no server answers from its system account", 1, nil, func(c *Servers) { c.System = c.Credentials })
	f("want a credentials file", 1, nil, func(c *Servers) { c.Credentials = "nonsense" })
	f("a password is not sent", 1, nil, func(c *Servers) { c.URLs = append(c.URLs, "nats://db.example:4222") })
}

// TestServersWithoutALeader are waited for: they have started together with the nodes, or lost one.
func TestServersWithoutALeader(t *testing.T) {
	t.Parallel()
	f := operate(t, 3, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	n, err := Connect(ctx, f.config(new(kit.Text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(ctx); err != nil {
		t.Error(err)
	}
	for _, s := range f.servers[1:] {
		s.Shutdown()
	}
	until(t, "no leader", func() (bool, bool) { return true, !f.servers[0].JetStreamIsLeader() })
	c := f.config(new(kit.Text))
	c.URLs = f.urls[:1]
	ctx, end := context.WithTimeout(t.Context(), time.Second)
	defer end()
	if n, err = Connect(ctx, c); err == nil || !strings.Contains(err.Error(), "they have no streams") {
		t.Error("servers without a leader are taken: ", err)
	}
}

// TestServersThatAreTooFew: more may come, until the wait is over.
func TestServersThatAreTooFew(t *testing.T) {
	t.Parallel()
	f := operate(t, 1, nil)
	n, err := Connect(t.Context(), f.config(new(kit.Text)))
	if err != nil {
		t.Fatal(err)
	}
	if text := lacking(t, n, 3*time.Second); !strings.Contains(text, "3 replicas need as many servers with streams, there are 1") {
		t.Error(text)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheSmallestMessageThatIsEnough(t *testing.T) {
	t.Parallel()
	f := operate(t, 1, func(_ int, o *server.Options) { o.MaxPayload = minPayload })
	c := f.config(new(kit.Text))
	c.Replicas = 1
	n, err := Connect(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestKeysOfUsers(t *testing.T) {
	t.Parallel()
	app, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, _ := app.PublicKey()
	seed, _ := app.Seed()
	f := operate(t, 1, func(_ int, o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: public}} })
	c := f.config(new(kit.Text))
	c.Replicas, c.Credentials = 1, string(seed)+"\n"
	n, err := Connect(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestServersOverTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	f := operate(t, 1, func(_ int, o *server.Options) { o.TLSConfig, o.TLSVerify = a.node(t), true })
	c := f.config(new(kit.Text))
	c.Replicas, c.TLS = 1, a.node(t)
	n, err := Connect(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Error(err)
	}
	c.TLS = newAuthority(t).node(t)
	if text := refused(t, c); !strings.Contains(text, "certificate") {
		t.Error(text)
	}
}

func TestSummaries(t *testing.T) {
	answer := func(name, version string, always bool, meta *server.MetaClusterInfo) serverState {
		var s serverState
		s.Server.Name, s.Server.Version = name, version
		s.Data.JetStream.Config = &server.JetStreamConfig{SyncAlways: always}
		s.Data.JetStream.Meta = meta
		return s
	}
	other := serverState{}
	other.Server.Name, other.Server.Version = "gateway", "2.9.0" // without streams: its version does not count
	meta := &server.MetaClusterInfo{Leader: "n1", Size: 3, Replicas: []*server.PeerInfo{{Name: "n2", Lag: 7}, {Name: "n3", Offline: true}}}
	s := summarize([]serverState{other, answer("n1", "2.15.2", true, meta), answer("n2", "2.15.0", true, &server.MetaClusterInfo{Leader: "n1", Size: 3})})
	if s.leader != "n1" || s.size != 3 || s.seen() != 2 || len(s.peers) != 3 || s.problem() != "" {
		t.Errorf("%+v", s)
	}
	for _, p := range s.peers {
		if p.Node == "n2" && p.Lag != 7 || p.Node == "n3" && p.Seen {
			t.Errorf("%+v", p)
		}
	}
	f := func(want string, accept bool, answers ...serverState) {
		t.Helper()
		e := &external{cfg: Servers{AcceptLazySync: accept, Logger: slog.New(slog.DiscardHandler)}}
		s := summarize(answers)
		err := s.complete(3)
		if err != nil && !errors.Is(err, errNotYet) {
			t.Error(err)
		}
		if err == nil {
			err = e.accept(s)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	one := answer("n1", "2.15.2", true, meta)
	f("", false, one, answer("n2", "2.15.0", true, nil))
	f("1 of 3 servers with streams answer, which is no majority", false, one)
	f("older than 2.15.0: n2 2.14.9", false, one, answer("n2", "2.14.9", true, nil))
	f("older than 2.15.0: n2 2.14.9", true, one, answer("n2", "2.14.9", true, nil))
	f("before they sync it: n2", false, one, answer("n2", "2.15.0", false, nil))
	f("", true, one, answer("n2", "2.15.0", false, nil))
	f("", true, one, answer("n2", "2.15.0", false, nil), answer("n3", "2.15.0", true, nil))
	f("before they sync", true, one, answer("n2", "2.14.0", false, nil))
	f("3 replicas need", true)
}
