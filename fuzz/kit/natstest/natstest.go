// Package natstest runs a cluster of NATS servers in the process of a test.
package natstest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"trunkline/engine/journal/replicated/natslog"
	"trunkline/fuzz/kit"
)

// Cluster is three servers on loopback that keep streams together, each with a directory of its
// own. They sync always. The end of the test stops them.
type Cluster struct {
	t       testing.TB
	servers []*server.Server
	options []*server.Options
}

// MaxPayload is the largest message that the servers take. It is their default.
const MaxPayload = 1 << 20

// Patient is longer than the servers of a busy machine need for an answer.
const Patient = 30 * time.Second

// nodes is how many servers a cluster has.
const nodes = 3

// New starts a cluster and waits until it can make streams.
func New(t testing.TB) *Cluster {
	c, dir := &Cluster{t: t}, t.TempDir() // before Cleanup: it is removed after the servers have stopped
	t.Cleanup(c.stop)
	var routes []*url.URL
	for range nodes { // a cluster with streams must know its routes before it starts
		routes = append(routes, &url.URL{Scheme: "nats", Host: kit.Reserve(t)})
	}
	for i, route := range routes {
		port, err := strconv.Atoi(route.Port())
		if err != nil {
			t.Fatal(err)
		}
		c.options = append(c.options, &server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT,
			JetStream: true, StoreDir: filepath.Join(dir, strconv.Itoa(i)), SyncAlways: true, MaxPayload: MaxPayload,
			NoSigs: true, NoLog: true, DisableJetStreamBanner: true,
			Cluster: server.ClusterOpts{Name: "journal", Host: "127.0.0.1", Port: port, NoAdvertise: true, PoolSize: 1},
			Routes:  routes,
		})
		c.servers = append(c.servers, nil)
	}
	for i := range nodes {
		c.Start(i)
	}
	c.Await("a cluster with a leader", func() bool {
		for _, s := range c.servers {
			if s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == nodes {
				return true
			}
		}
		return false
	})
	return c
}

// Start starts a server that does not run.
func (c *Cluster) Start(node int) {
	c.t.Helper()
	s, err := server.NewServer(c.options[node].Clone())
	if err != nil {
		c.t.Fatal(err)
	}
	c.servers[node] = s
	s.Start()
}

// Stop stops a server, and returns when its directory is closed.
func (c *Cluster) Stop(node int) {
	c.servers[node].Shutdown()
	c.servers[node].WaitForShutdown()
}

// Blocks returns the files in which a server keeps the messages of a stream.
func (c *Cluster) Blocks(node int, stream string) []string {
	c.t.Helper()
	files, err := filepath.Glob(filepath.Join(c.options[node].StoreDir, "jetstream", "*", "streams", stream, "msgs", "*.blk"))
	if err != nil || len(files) == 0 {
		c.t.Fatalf("server %d has no files of stream %s: %v", node, stream, err)
	}
	return files
}

// leader returns the server that leads a stream, -1 for none.
func (c *Cluster) leader(stream string) int {
	for i, s := range c.servers {
		if s != nil && s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, stream) {
			return i
		}
	}
	return -1
}

// Lead has a server lead a stream.
func (c *Cluster) Lead(nc *nats.Conn, stream string, node int) {
	c.t.Helper()
	ask := fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, c.options[node].ServerName)
	c.Await("the leader that was asked for", func() bool {
		if c.leader(stream) == node {
			return true
		}
		_, _ = nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, ask, time.Second) // it is asked again
		time.Sleep(100 * time.Millisecond)
		return false
	})
}

// Addr returns the host:port at which a server takes clients until it is stopped.
func (c *Cluster) Addr(node int) string {
	c.t.Helper()
	var addr net.Addr
	c.Await("a server that listens", func() bool {
		addr = c.servers[node].Addr()
		return addr != nil
	})
	return addr.String()
}

// Silence has requests of the clients of a server on a subject never be answered. The subject may
// have wildcards.
func (c *Cluster) Silence(node int, subject string) {
	c.t.Helper()
	const nowhere = "nowhere"
	if err := c.servers[node].GlobalAccount().AddMapping(subject, nowhere); err != nil {
		c.t.Fatal(err)
	}
	nc := c.Connect(node)
	c.t.Cleanup(nc.Close)
	if _, err := nc.Subscribe(nowhere, func(*nats.Msg) {}); err != nil {
		c.t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		c.t.Fatal(err)
	}
}

// Connect returns a connection to a server, which the caller closes.
func (c *Cluster) Connect(node int) *nats.Conn {
	c.t.Helper()
	var nc *nats.Conn
	c.Await("a server that takes clients", func() (ok bool) {
		var err error
		nc, err = nats.Connect("", nats.InProcessServer(c.servers[node]), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
		return err == nil
	})
	return nc
}

// Await waits for something that a busy machine may delay.
func (c *Cluster) Await(what string, done func() bool) {
	c.t.Helper()
	kit.Until(c.t, what, done)
}

// Open opens a log whose servers may take some time to answer, however long they take to agree on a
// leader.
func (c *Cluster) Open(nc *nats.Conn, name string, within time.Duration) *natslog.Log {
	c.t.Helper()
	var l *natslog.Log
	var err error
	c.Await("a stream", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), Patient)
		defer cancel()
		l, err = natslog.Open(ctx, natslog.Config{Conn: nc, Name: name, AnswerWithin: within})
		return err == nil
	})
	return l
}

func (c *Cluster) stop() {
	for _, s := range c.servers {
		if s != nil {
			s.Shutdown()
			s.WaitForShutdown()
		}
	}
}
