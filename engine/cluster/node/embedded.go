package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"golang.org/x/time/rate"
)

// Settings of every server.
const (
	// maxPayload is the largest message that nodes take, in bytes.
	maxPayload = 8 << 20
	// catchupBytes may be under way to followers that catch up. The library's 64 MiB are for all
	// groups of a server together.
	catchupBytes = 128 << 20
	// routePool: one connection between two nodes. More of them help with many accounts.
	routePool = 1
	// handshake is the time for the steps of a new route. The library's 2 s are few for a machine
	// that is busy starting.
	handshake = 10 * time.Second
	// startTimeout bounds how long a started server may take to listen.
	startTimeout = 10 * time.Second
	// A server without clients has none to wait for when it stops.
	lameDuckGrace = time.Millisecond
	lameDuck      = time.Second

	storeDir = "jetstream" // the library's name
)

// Route is the address of a node.
type Route struct {
	Node string // id
	Addr string // host:port
}

// Config is what a node needs for a server of its own.
type Config struct {
	Cluster, Node string
	// Listen is the address for the other nodes; Routes has all nodes of the cluster, this one too.
	// All nodes have the same list.
	Listen string
	Routes []Route
	// Secret, if not "", has to be that of the other nodes. Routes are then encrypted; TLS is nil.
	Secret string
	// TLS, if not nil, is for both sides of each route: Certificates, RootCAs, ClientCAs, and
	// ClientAuth that requires a certificate.
	TLS *tls.Config
	// Dir is for this node alone. It is made if it is missing.
	Dir string
	// Partitions is fixed when Dir is made, and the same on all nodes.
	Partitions int
	// ElectionTimeout is the shortest time after which nodes that hear no leader elect another one,
	// the same on all nodes; 0 is the library's 4 s.
	ElectionTimeout time.Duration
	Logger          *slog.Logger
}

// embedded is the server of this process.
type embedded struct {
	cfg    Config
	server *server.Server
	system *nats.Conn
	log    *serverLog
	dir    *os.File // locked

	once    sync.Once
	stopErr error
}

// Names of what nodes compare (server.Options.Metadata).
const (
	metaElection   = "election_timeout"
	metaPartitions = "partitions"
	metaNodes      = "nodes"
)

// Start starts a server in this process and connects to it. It does not wait for other nodes:
// AwaitQuorum does. A node that may not be one is refused.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	n, err := start(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot start node %q of cluster %q: %w", cfg.Node, cfg.Cluster, err)
	}
	return n, nil
}

func start(ctx context.Context, cfg Config) (_ *Node, err error) {
	if err = cfg.secure(); err != nil {
		return nil, err
	}
	if err = cfg.probe(ctx, ""); err != nil {
		return nil, err
	}
	return cfg.begin(ctx)
}

// begin starts the server of a node that may be one.
func (cfg Config) begin(ctx context.Context) (_ *Node, err error) {
	e := &embedded{cfg: cfg, log: newServerLog(cfg.Logger)}
	if e.dir, err = takeDirectory(cfg.Dir, cfg.identity()); err != nil {
		return nil, fmt.Errorf("cannot use directory %s: %w", cfg.Dir, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.dir.Close())
		}
	}()
	if err = cfg.renew(ctx); err != nil {
		return nil, err
	}
	if !hasTimers && cfg.ElectionTimeout > 0 {
		cfg.Logger.Warn("cannot use cluster.election_timeout_ms: nats-server does not have the timers that it sets",
			"version", server.VERSION, "node", cfg.Node)
	}
	if err = holdTimers(cfg.ElectionTimeout); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			releaseTimers()
		}
	}()
	return e.run()
}

// run starts the server and its connections. They have ended if there is an error.
func (e *embedded) run() (_ *Node, err error) {
	app, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	system, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	opts, err := e.options(app, system)
	if err != nil {
		return nil, err
	}
	if e.server, err = server.NewServer(opts); err != nil {
		return nil, err
	}
	e.server.SetLoggerV2(e.log, false, false, false)
	unused, ok := withoutClients(e.server)
	if !ok {
		e.cfg.Logger.Warn("nats-server takes no listener of this program: it opens a port of 127.0.0.1, where nobody can log in",
			"version", server.VERSION, "node", e.cfg.Node)
	}
	e.server.Start()
	defer func() {
		if err != nil {
			unused()
			e.server.Shutdown()
			e.server.WaitForShutdown()
		}
	}()
	if !e.ready() {
		return nil, errors.New(e.log.failure())
	}
	if e.system, err = e.connect("system", system); err != nil {
		return nil, err
	}
	conn, err := e.connect("streams", app)
	if err != nil {
		e.system.Close()
		return nil, err
	}
	return &Node{conn: conn, server: e}, nil
}

// connect connects inside the process, as the user with key.
func (e *embedded) connect(what string, key nkeys.KeyPair) (*nats.Conn, error) {
	public, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	return nats.Connect("", append(policy(e.cfg.Node, what, e.cfg.Logger), nats.InProcessServer(e.server), nats.Nkey(public, key.Sign))...)
}

// ready waits until the server listens or has given up.
func (e *embedded) ready() bool {
	for end := time.Now().Add(startTimeout); time.Now().Before(end); {
		if e.log.failure() != "" {
			return false
		}
		if e.server.ReadyForConnections(startTimeout / 100) {
			return true
		}
	}
	e.log.Fatalf("The server does not listen after %v", startTimeout)
	return false
}

// options returns those of the server. app and system are the keys of the connections inside the
// process: the account with the streams and the system account.
func (e *embedded) options(app, system nkeys.KeyPair) (*server.Options, error) {
	c := &e.cfg
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	appKey, err := app.PublicKey()
	if err != nil {
		return nil, err
	}
	systemKey, err := system.PublicKey()
	if err != nil {
		return nil, err
	}
	sys := server.NewAccount(server.DEFAULT_SYSTEM_ACCOUNT)
	o := &server.Options{
		ServerName: c.Node, Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		MaxPayload: maxPayload, LameDuckDuration: lameDuck, LameDuckGracePeriod: lameDuckGrace,
		Accounts: []*server.Account{sys}, SystemAccount: sys.Name,
		Nkeys:     []*server.NkeyUser{{Nkey: appKey}, {Nkey: systemKey, Account: sys}},
		JetStream: true, StoreDir: c.Dir, SyncAlways: true, JetStreamMaxCatchup: catchupBytes, DisableJetStreamBanner: true,
		Metadata: map[string]string{metaElection: c.ElectionTimeout.String(), metaPartitions: strconv.Itoa(c.Partitions), metaNodes: c.nodes()},
		Cluster: server.ClusterOpts{
			Name: c.Cluster, Host: host, Port: number, NoAdvertise: true, PoolSize: routePool,
			AuthTimeout: handshake.Seconds(), TLSTimeout: handshake.Seconds(), TLSConfig: c.TLS,
		},
		CustomRouterAuthentication: &members{c, rate.NewLimiter(rate.Every(refusalsEvery), 1)},
	}
	for _, r := range c.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", Host: r.Addr, User: url.User(c.Node)})
	}
	return o, nil
}

// stop implements membership.
func (e *embedded) stop(ctx context.Context) error {
	e.once.Do(func() { e.stopErr = e.shutdown(ctx) })
	return e.stopErr
}

func (e *embedded) shutdown(ctx context.Context) error {
	e.system.Close()
	done := make(chan struct{})
	go func() {
		e.server.LameDuckShutdown()
		e.server.WaitForShutdown()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
		e.server.Shutdown()
		<-done
	}
	releaseTimers()
	return errors.Join(err, e.dir.Close())
}
