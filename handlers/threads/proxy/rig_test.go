package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"trunkline/engine/cluster/peer"
	"trunkline/engine/cluster/placement"
	"trunkline/engine/cluster/upstream"
	"trunkline/engine/connection"
	"trunkline/engine/store"
	"trunkline/engine/store/rows"
	"trunkline/engine/stream"
	"trunkline/engine/threadstore"
	"trunkline/handlers/threads"
	"trunkline/handlers/threads/follow"
	"trunkline/handlers/threads/lines"
	"trunkline/handlers/threads/mcp"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/rest"
	"trunkline/handlers/threads/token"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret   = "0123456789abcdef0123456789abcdef"
	issuer   = "https://issuer.example"
	patience = 30 * time.Second // of tests
)

// fixedID is the id of all requests whose client names none.
func fixedID(dst []byte) []byte { return append(dst, "req_1"...) }

func newVerifier(t testing.TB) *token.Verifier {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := token.New(token.Config{HS256SecretFile: name, Issuer: issuer})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// bearerOf signs a token.
func bearerOf(agent, workspace, role string) string {
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"iss": issuer, "aud": "orkiva", "agent_id": agent, "workspace_id": workspace,
		"role": role, "session_id": "sess_" + agent, "iat": 1771329600, "exp": 4102444800, "jti": "j"}).SignedString([]byte(secret))
	if err != nil {
		panic(err)
	}
	return text
}

// owner is a server of agent threads over an engine of its own, which journals nothing.
type owner struct {
	web   *rest.Server
	lines *stream.Host
	tasks sync.WaitGroup
}

func newOwner(t testing.TB, verifier *token.Verifier, limits rest.Limits) *owner {
	t.Helper()
	db, err := rows.Open(rows.Config{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	engine := threadstore.New(threadstore.Config{})
	st := store.New(store.Config{Machines: []store.Machine{engine.Machine()}})
	engine.Join(st)
	if err := engine.SetRows(threadstore.StoredRows(db)); err != nil {
		t.Fatal(err)
	}
	service := threads.New(threads.Config{Engine: engine, Await: st.Await, Busy: func(string) bool { return false }})
	peers, issuers := token.NewPeers(100_000), []string{issuer}
	surface := method.Surface{
		Rows:             method.Rows,
		Dispatcher:       service,
		Verify:           verifier.Verify,
		Peers:            peers,
		IDs:              fixedID,
		ResourceMetadata: mcp.MetadataURL("https://x", issuers),
	}
	handler := mcp.New(mcp.Config{Surface: surface, CallsPerMinute: 1_000_000})
	o := &owner{web: rest.New(rest.Config{Surface: surface, MCP: handler,
		Metadata: mcp.Metadata("https://x", issuers), Audit: service.Audit, Jobs: service.Jobs, Limits: limits})}
	srv := lines.New(lines.Config{Dispatcher: service, Verifier: verifier, Follow: follow.New(follow.Config{Engine: engine, Verifier: verifier}), Peers: peers, Gate: &connection.Gate{Journal: func() connection.Journal { return nil }},
		Lookup: method.Lookup, NewRequestID: fixedID, Logger: slog.New(slog.DiscardHandler)})
	o.lines = stream.NewHost(stream.Config{Limits: srv.Limits(), Open: srv.Open, Refuse: srv.AppendRefusal})
	t.Cleanup(func() {
		o.end()
		_ = db.Close()
	})
	return o
}

// serve serves both listeners.
func (o *owner) serve(web, lines net.Listener) {
	o.tasks.Go(func() { _ = o.web.Serve(web) })
	o.tasks.Go(func() { _ = o.lines.ServeListener(lines) })
}

// end ends the owner at once, as one that has lost its partition.
func (o *owner) end() {
	at, cancel := context.WithCancel(context.Background())
	cancel()
	_ = o.web.Shutdown(at)
	o.lines.Drain()
	within, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = o.lines.Close(within)
	o.tasks.Wait()
}

// listen returns a listener on loopback.
func listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// place is a partition: the owner that it has.
type place struct {
	*owner
	owned context.Context
	lose  context.CancelFunc
	local map[string]*pipes // by service
}

// cluster is a node whose clients reach the owners of all partitions.
type cluster struct {
	t        testing.TB
	verifier *token.Verifier
	limits   rest.Limits
	trust    *tls.Config
	inside   bool
	peers    *peer.Server
	addr     string // of peers
	web      *Web
	lines    *Lines
	at       sides

	mu      sync.Mutex
	places  []*place // nil: it has no owner
	dialled int
}

// sides are the addresses of one server.
type sides struct{ web, lines string }

func newCluster(t testing.TB, partitions int, limits rest.Limits, change func(*Config)) *cluster {
	t.Helper()
	return setUp(t, setup{partitions: partitions, limits: limits, config: change})
}

// setup is how a cluster is made.
type setup struct {
	partitions    int
	limits        rest.Limits
	config        func(*Config)
	lines         func(*Lines)
	secure, trust *tls.Config // between nodes
	inside        bool        // the owners are in the process of the router
}

func setUp(t testing.TB, as setup) *cluster {
	t.Helper()
	c := &cluster{t: t, verifier: newVerifier(t), limits: as.limits, trust: as.trust, inside: as.inside, places: make([]*place, as.partitions)}
	ln := listen(t)
	c.addr = ln.Addr().String()
	var err error
	if c.peers, err = peer.NewServer(ln, peer.Config{Cluster: "c", Node: "n1", ServerTLS: as.secure}); err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	tasks.Go(func() { _ = c.peers.Serve() })
	t.Cleanup(func() {
		_ = c.peers.Close()
		tasks.Wait()
	})
	for p := range as.partitions {
		c.own(p)
	}
	cfg := Config{Config: upstream.Config{Partitions: as.partitions, Hold: patience}, MaxConnections: 100, IDs: fixedID}
	if as.config != nil {
		as.config(&cfg)
	}
	cfg.Dial = c.dial("web")
	limits := as.limits
	limits.Connections = cfg.MaxConnections
	c.web = newWeb(cfg, limits)
	cfg.Dial = c.dial("lines")
	c.lines = NewLines(cfg)
	if as.lines != nil {
		as.lines(c.lines)
	}
	w, l := listen(t), listen(t)
	c.at = sides{w.Addr().String(), l.Addr().String()}
	tasks.Go(func() {
		if err := c.web.Serve(w); err != nil {
			t.Error(err)
		}
	})
	tasks.Go(func() {
		if err := c.lines.Serve(l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		within, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(c.web.Shutdown(within), c.lines.Shutdown(within)); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
	return c
}

// own has a new owner serve a partition.
func (c *cluster) own(partition int) {
	c.t.Helper()
	o := &place{owner: newOwner(c.t, c.verifier, c.limits)}
	o.owned, o.lose = context.WithCancel(context.Background())
	c.t.Cleanup(o.lose)
	if c.inside {
		o.local = map[string]*pipes{"web": newPipes(), "lines": newPipes()}
		o.serve(o.local["web"], o.local["lines"])
	} else {
		o.serve(c.peers.Service("web", partition), c.peers.Service("lines", partition))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.places[partition] = o
}

// lose has the owner of a partition lose it, and end.
func (c *cluster) lose(partition int) {
	c.mu.Lock()
	o := c.places[partition]
	c.places[partition] = nil
	c.mu.Unlock()
	o.lose()
	o.end()
}

// dial is a Config.Dial, as a node has it.
func (c *cluster) dial(service string) func(context.Context, int, string) (net.Conn, context.Context, error) {
	return func(ctx context.Context, partition int, client string) (net.Conn, context.Context, error) {
		for {
			c.mu.Lock()
			o := c.places[partition]
			c.mu.Unlock()
			if o != nil {
				nc, err := c.reach(ctx, o, service, partition, client)
				if err == nil {
					c.mu.Lock()
					c.dialled++
					c.mu.Unlock()
					return nc, o.owned, nil
				}
			}
			select {
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
	}
}

// reach connects to an owner.
func (c *cluster) reach(ctx context.Context, o *place, service string, partition int, client string) (net.Conn, error) {
	if c.inside {
		return o.local[service].dial(ctx, client)
	}
	return peer.NewDialer(&peer.Config{Cluster: "c", Node: "n2", ClientTLS: c.trust}).Dial(ctx, c.addr, service, partition, client)
}

func (c *cluster) dials() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dialled
}

// direct serves one owner without a router.
func direct(t testing.TB, limits rest.Limits) sides {
	t.Helper()
	o, w, l := newOwner(t, newVerifier(t), limits), listen(t), listen(t)
	o.serve(w, l)
	return sides{w.Addr().String(), l.Addr().String()}
}

// workspaces returns the name of a workspace in each partition.
func workspaces(partitions int) []string {
	keys, err := placement.NewKeyspace(partitions)
	if err != nil {
		panic(err)
	}
	names := make([]string, partitions)
	for i, left := 0, partitions; left > 0; i++ {
		name := fmt.Sprintf("wk_%d", i)
		if at := &names[keys.Partition(placement.Workspace, name)]; *at == "" {
			*at, left = name, left-1
		}
	}
	return names
}

// beside returns the name of another workspace that is in the same one of three partitions.
func beside(workspace string) string {
	keys, _ := placement.NewKeyspace(3)
	for i := 0; ; i++ {
		name := fmt.Sprintf("beside_%d", i)
		if keys.Partition(placement.Workspace, name) == keys.Partition(placement.Workspace, workspace) {
			return name
		}
	}
}

// wire is a connection to one side.
type wire struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

func connect(t testing.TB, addr string) *wire {
	t.Helper()
	nc, err := net.Dial("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(patience))
	return &wire{t, nc, bufio.NewReader(nc)}
}

// write sends text; "\n" stands for a line end of HTTP. A server that hung up already is no
// failure: its answer counts.
func (p *wire) write(text string) { _, _ = io.WriteString(p, strings.ReplaceAll(text, "\n", "\r\n")) }

var (
	madeIDs = regexp.MustCompile(`\b(th|msg|trg|req|sch|dly)_[0-9A-HJKMNP-TV-Z]{26}`)
	times   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
)

// plain returns a text without what differs from one server to another.
func plain(text string) string {
	return times.ReplaceAllString(madeIDs.ReplaceAllString(text, "${1}_made"), "<time>")
}

// answer reads an answer to a request with that HTTP method, and returns all that a client can see
// of it, but the order of header fields and the Date.
func (p *wire) answer(httpMethod string) (text string, closes bool) {
	p.t.Helper()
	r, err := http.ReadResponse(p.in, &http.Request{Method: httpMethod})
	if err != nil {
		return "no answer", true
	}
	body, err := io.ReadAll(r.Body)
	var fields []string
	for name, values := range r.Header {
		if name != "Date" {
			fields = append(fields, fmt.Sprintf("%s: %q", name, values))
		}
	}
	slices.Sort(fields)
	return fmt.Sprintf("%s %s\n%s\nlength %d %v close %v\n%s (%v)", r.Proto, r.Status, strings.Join(fields, "\n"), r.ContentLength, r.TransferEncoding, r.Close, body, err), r.Close
}

// rest returns what comes until the end of the connection.
func (p *wire) rest() string {
	b, err := io.ReadAll(p.in)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Error("the connection does not end")
	}
	return string(b)
}
