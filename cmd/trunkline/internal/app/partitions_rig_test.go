package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/cluster/control"
	"trunkline/engine/cluster/node"
	"trunkline/engine/connection"
	"trunkline/engine/obs"
	"trunkline/handlers/ipc/ipcclient"
)

// partitionsRig is a cluster of three nodes whose journal has three partitions, without a journal
// and without elections: the services, the routers and the connections between them are made as Run
// makes them. Node i owns partition i.
type partitionsRig struct {
	t     *testing.T
	nodes []*server
	mono  atomic.Int64 // since the time of wallStart, in nanoseconds
	ends  atomic.Bool
}

const (
	rigNodes  = 3
	wallStart = 1700000000000 // in milliseconds
)

// newPartitionsRig starts the nodes. change completes their settings; may be nil. The clock of the
// services stands until advance.
func newPartitionsRig(t *testing.T, change func(*config.Config), set ...string) *partitionsRig {
	t.Helper()
	r := &partitionsRig{t: t}
	cfg := settings(t, append([]string{"http.listen_addr=", "admin.listen_addr=", "threads.listen_addr=", "exacta.listen_addr=", fmt.Sprint("cluster.partitions=", rigNodes)}, set...)...)
	cfg.Kernel.Now = r.now
	if change != nil {
		change(cfg)
	}
	for i := range rigNodes {
		r.nodes = append(r.nodes, r.bind(cfg, fmt.Sprint("n", i+1)))
	}
	for i, s := range r.nodes {
		for p, part := range s.parts {
			c := part.current.Load()
			if err := c.kernel.recover(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if i == p {
				c.kernel.peers = []bound{{ln: c.lease.Local(kernelService), kind: kindLocal}}
				c.kernel.serve(s.report)
			}
		}
	}
	for _, s := range r.nodes {
		s.router.serve(func(err error) {
			if !r.ends.Load() { // a router may be shut down before it serves
				s.report(err)
			}
		})
	}
	t.Cleanup(r.end)
	return r
}

func (r *partitionsRig) now() connection.Instant {
	mono := r.mono.Load()
	return connection.Instant{Mono: int64(time.Hour) + mono, Wall: wallStart + mono/int64(time.Millisecond)}
}

func (r *partitionsRig) advance(d time.Duration) { r.mono.Add(int64(d)) }

// bind opens what Run opens, for a node that has joined.
func (r *partitionsRig) bind(cfg *config.Config, id string) *server {
	r.t.Helper()
	log := slog.New(slog.DiscardHandler)
	nc, err := clusterConfig(cfg, log)
	if err != nil {
		r.t.Fatal(err)
	}
	nc.Name, nc.ID = "rig", id
	nc.Embedded.Routes = []node.Route{{Node: "n1"}, {Node: "n2"}, {Node: "n3"}}
	dial := func(ctx context.Context, partition int, client string) (net.Conn, context.Context, error) {
		l := r.nodes[partition].parts[partition].current.Load().lease
		conn, err := l.Local(kernelService).Dial(ctx, client)
		return conn, l.Ended(), err
	}
	s, err := bind(
		cfg,
		Options{
			Build:   obs.ReadBuild("test", "rev"),
			Logger:  log,
			Banner:  io.Discard,
			cluster: control.New(nc),
			dial:    dial,
		},
	)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// addr returns where a node serves clients.
func (r *partitionsRig) addr(node int) string { return r.nodes[node].router.kernel.bound[0].addr }

// client returns a client of a node.
func (r *partitionsRig) client(node int) *ipcclient.Conn {
	r.t.Helper()
	c, err := ipcclient.Dial(r.t.Context(), r.addr(node))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

// sweep runs a garbage collection at each partition.
func (r *partitionsRig) sweep() {
	for p, s := range r.nodes {
		s.parts[p].current.Load().kernel.rt.Sweep()
	}
}

// drain answers what was asked and ends the connections.
func (r *partitionsRig) drain() {
	r.ends.Store(true)
	var all sync.WaitGroup
	for _, s := range r.nodes {
		all.Go(func() { s.router.shutdown(s.grace()) })
	}
	all.Wait()
}

func (r *partitionsRig) end() {
	r.drain()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i, s := range r.nodes {
		for p, part := range s.parts {
			c := part.current.Load()
			if i == p {
				if err := c.kernel.shutdown(ctx); err != nil {
					r.t.Error(err)
				}
			} else {
				c.kernel.abort()
			}
			c.lease.Close()
		}
		if err := s.options.cluster.Shutdown(ctx); err != nil {
			r.t.Error(err)
		}
		select {
		case err := <-s.failed:
			r.t.Error(err)
		default:
		}
	}
}
