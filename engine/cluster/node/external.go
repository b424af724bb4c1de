package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"golang.org/x/mod/semver"

	"trunkline/engine/connection"
)

// minPayload is the least that the largest message of an operator's servers may be, in bytes: a
// block of the journal has up to half of it.
const minPayload = 1 << 20

// Servers is how to reach servers of an operator.
type Servers struct {
	Cluster, Node string
	URLs          []string
	// Credentials and System are for the account with the streams and for the system account: the
	// contents of a credentials file, the seed of an nkey, or user:password; "" is no
	// authentication, and a System of "" no access to the system account.
	Credentials, System string
	// TLS, if not nil, is required of the servers.
	TLS *tls.Config
	// Replicas is how many servers are to have each stream.
	Replicas int
	// AcceptLazySync: the servers may acknowledge a write before a sync, or be none that can be
	// asked.
	AcceptLazySync bool
	Logger         *slog.Logger
}

// external is the servers of an operator.
type external struct {
	cfg    Servers
	conn   *nats.Conn
	js     jetstream.JetStream
	system *nats.Conn // nil without access

	mu     sync.Mutex
	expect int // the most answers there were: so many are waited for
}

// errUnseen is why servers that cannot be asked are refused.
var errUnseen = errors.New("whether they sync each write is visible to their system account alone, for which there are no credentials")

// Connect connects to servers of an operator, and refuses those that the journal cannot stand on:
// too old, without streams, with too small messages, or without a sync of each write. While they
// have no leader it waits, until ctx ends.
func Connect(ctx context.Context, cfg Servers) (*Node, error) {
	n, err := connect(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot use the servers of cluster %q: %w", cfg.Cluster, err)
	}
	return n, nil
}

func connect(ctx context.Context, cfg Servers) (_ *Node, err error) {
	if cfg.System == "" && !cfg.AcceptLazySync {
		return nil, errUnseen
	}
	conn, err := cfg.dial("streams", cfg.Credentials)
	if err != nil {
		return nil, err
	}
	e := &external{cfg: cfg, conn: conn}
	n := &Node{conn: conn, server: e}
	if e.js, err = jetstream.New(conn); err == nil {
		err = e.check(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, n.Close(ctx))
	}
	return n, nil
}

// dial connects to one of the servers. what is the name of the connection in the log.
func (cfg *Servers) dial(what, credentials string) (*nats.Conn, error) {
	opts := policy(cfg.Node, what, cfg.Logger)
	if cfg.TLS != nil {
		opts = append(opts, nats.Secure(cfg.TLS))
	}
	identify, plain, err := identification(credentials)
	if err != nil {
		return nil, err
	}
	if identify != nil {
		opts = append(opts, identify)
	}
	if plain && cfg.TLS == nil {
		for _, u := range cfg.URLs {
			if !hidden(u) {
				return nil, fmt.Errorf("a password is not sent to %s without TLS: use tls://, or name the authorities of its certificate", u)
			}
		}
	}
	return nats.Connect(strings.Join(cfg.URLs, ","), opts...)
}

// hidden reports whether none reads along on the way to the server at a URL.
func hidden(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "tls" || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// identification returns the option for credentials in any of their forms, nil for none. plain:
// they are a password, which the server gets to see. Errors do not contain them.
func identification(credentials string) (option nats.Option, plain bool, err error) {
	text := strings.TrimSpace(credentials)
	switch {
	case text == "":
		return nil, false, nil
	case strings.Contains(text, "-----BEGIN NATS USER JWT-----"):
		return nats.UserCredentialBytes([]byte(text)), false, nil
	case strings.Contains(text, ":") && !strings.ContainsAny(text, "\r\n"):
		user, password, _ := strings.Cut(text, ":")
		return nats.UserInfo(user, password), true, nil
	}
	pair, err := nkeys.ParseDecoratedUserNKey([]byte(text))
	if err != nil {
		return nil, false, errors.New("want a credentials file, the seed of an nkey of a user, or one line user:password")
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, false, err
	}
	return nats.Nkey(public, pair.Sign), false, nil
}

// check returns why the journal cannot stand on the servers.
func (e *external) check(ctx context.Context) error {
	conn := e.conn
	if v := conn.ConnectedServerVersion(); older(v) {
		return fmt.Errorf("the server at %s has version %s, the oldest one that works is %s", conn.ConnectedUrlRedacted(), v, floor)
	}
	if n := conn.MaxPayload(); n < minPayload {
		return fmt.Errorf("the largest message of the server at %s has %d bytes, at least %d are needed (max_payload)", conn.ConnectedUrlRedacted(), n, minPayload)
	}
	if err := e.awaitStreams(ctx); err != nil {
		return fmt.Errorf("they have no streams for this account: %w", err)
	}
	if e.cfg.System == "" {
		e.cfg.Logger.Warn("cannot see whether the servers of the cluster sync each write, which cluster.nats_accept_lazy_sync accepts")
		return nil
	}
	var err error
	if e.system, err = e.cfg.dial("system", e.cfg.System); err != nil {
		return fmt.Errorf("cannot connect to their system account: %w", err)
	}
	s, err := e.ask(ctx)
	if err != nil {
		return err
	}
	return e.accept(s)
}

// awaitStreams returns once the servers have streams for the account. Those that have just started
// have none before they have elected a leader, which is waited for until ctx ends: a question that
// meets none of them is refused, or never answered.
func (e *external) awaitStreams(ctx context.Context) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, leaderWithin)
		_, err := e.js.AccountInfo(attempt)
		cancel()
		var api *jetstream.APIError
		leaderless := errors.As(err, &api) && api.ErrorCode == clusterNotAvailable || errors.Is(err, context.DeadlineExceeded)
		if !leaderless {
			return err
		}
		if !connection.Pause(ctx, pollWhileJoins) {
			return err
		}
	}
}

const (
	// clusterNotAvailable is the code of servers that have no leader.
	clusterNotAvailable = 10008
	// leaderWithin is how long one question for the leader waits for its answer.
	leaderWithin = 2 * time.Second
)

// streamServers is what the servers with streams answered.
type streamServers struct {
	leader string
	size   int // of the group of all of them
	peers  []Peer
	lazy   []string // names of those that acknowledge before a sync
	old    []string // names and versions of those before floor
}

// ask asks the servers from their system account.
func (e *external) ask(ctx context.Context) (*streamServers, error) {
	e.mu.Lock()
	expect := e.expect
	e.mu.Unlock()
	answers, err := askServers(ctx, e.system, expect)
	if err != nil {
		return nil, fmt.Errorf("cannot ask the servers: %w", err)
	}
	if len(answers) == 0 {
		return nil, errors.New("no server answers from its system account")
	}
	e.mu.Lock()
	e.expect = max(e.expect, len(answers))
	e.mu.Unlock()
	return summarize(answers), nil
}

func summarize(answers []serverState) *streamServers {
	s := &streamServers{size: 1}
	peers := make(map[string]Peer)
	for _, a := range answers {
		m := a.Data.JetStream.Meta
		if m == nil {
			continue
		}
		s.size = max(s.size, m.Size)
		if m.Leader != a.Server.Name { // the leader alone knows how far the others are
			continue
		}
		s.leader = m.Leader
		for _, r := range m.Replicas {
			if r != nil && r.Name != "" {
				peers[r.Name] = Peer{Node: r.Name, Lag: r.Lag}
			}
		}
	}
	for _, a := range answers {
		name, config := a.Server.Name, a.Data.JetStream.Config
		if config == nil {
			continue
		}
		peers[name] = Peer{Node: name, Seen: true, Lag: peers[name].Lag}
		if !config.SyncAlways {
			s.lazy = append(s.lazy, name)
		}
		if older(a.Server.Version) {
			s.old = append(s.old, name+" "+a.Server.Version)
		}
	}
	s.peers = slices.Collect(maps.Values(peers))
	return s
}

// problem describes which servers are not fit, "" if all are that answered.
func (s *streamServers) problem() string {
	switch {
	case len(s.lazy) > 0:
		return "these servers acknowledge a write before they sync it: " + strings.Join(s.lazy, ", ") + " (sync_interval: always)"
	case len(s.old) > 0:
		return "these servers are older than " + floor + ": " + strings.Join(s.old, ", ")
	}
	return ""
}

func (s *streamServers) seen() (n int) {
	for _, p := range s.peers {
		if p.Seen {
			n++
		}
	}
	return n
}

// accept returns why the servers that answered are not fit.
func (e *external) accept(s *streamServers) error {
	p := s.problem()
	if p != "" && len(s.lazy) > 0 && len(s.old) == 0 && e.cfg.AcceptLazySync {
		e.cfg.Logger.Warn(p)
		return nil
	}
	if p != "" {
		return errors.New(p)
	}
	return nil
}

// complete returns which servers are missing. A minority may be away.
func (s *streamServers) complete(replicas int) error {
	if s.size < replicas {
		return fmt.Errorf("%w: %d replicas need as many servers with streams, there are %d", errNotYet, replicas, s.size)
	}
	if seen := s.seen(); seen <= s.size/2 {
		return fmt.Errorf("%w: %d of %d servers with streams answer, which is no majority", errNotYet, seen, s.size)
	}
	return nil
}

// floor is the oldest version of servers of an operator: before it, a write that is synced took a
// sync for each message.
const floor = "2.15.0"

// older reports whether a version of a server is below floor.
func older(version string) bool { return semver.Compare("v"+version, "v"+floor) < 0 }

// health implements membership.
func (e *external) health(ctx context.Context, h *Health) {
	h.Cluster, h.Node = e.cfg.Cluster, e.cfg.Node
	if !h.Connected {
		h.Problem = "there is no connection to a server"
		if err := e.conn.LastError(); err != nil {
			h.Problem += ": " + err.Error()
		}
		return
	}
	if _, err := e.js.AccountInfo(ctx); err != nil { // the leader answers it
		h.Problem = err.Error()
	} else {
		h.Quorum, h.Current = true, true
	}
	if e.system == nil {
		return
	}
	s, err := e.ask(ctx)
	if err != nil {
		h.Problem = err.Error()
		return
	}
	h.Leader, h.Peers = s.leader, s.peers
	if h.Problem == "" && !e.cfg.AcceptLazySync {
		h.Problem = s.problem()
	}
}

// agree implements membership: servers that come later are looked at as well.
func (e *external) agree(ctx context.Context) error {
	if e.system == nil {
		return nil
	}
	s, err := e.ask(ctx)
	if err == nil {
		err = s.complete(e.cfg.Replicas)
	}
	if err != nil {
		return err
	}
	if seen := s.seen(); seen < s.size {
		e.cfg.Logger.Warn("some servers of the cluster do not answer: cannot see whether they sync each write", "seen", seen, "servers", s.size)
	}
	return e.accept(s)
}

// stop implements membership.
func (e *external) stop(context.Context) error {
	if e.system != nil {
		e.system.Close()
	}
	return nil
}
