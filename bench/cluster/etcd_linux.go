package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

const (
	childMember = "etcd-member"
	valueBytes  = 300
	// perConnection is how many puts are in flight on a connection.
	perConnection = 16
	putTimeout    = 20 * time.Second
)

// runMember is a member of etcd until SIGTERM: its name, its addresses for clients and for the
// others, all members, and its directory.
func runMember(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("cannot be a member with %d arguments, want 5", len(args))
	}
	client, peer := args[1], []url.URL{{Scheme: "http", Host: args[2]}}
	cfg := embed.NewConfig()
	cfg.Name, cfg.InitialCluster, cfg.Dir, cfg.LogLevel = args[0], args[3], args[4], "error"
	cfg.ElectionMs = uint(steadyElection.Milliseconds())
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = peer, peer
	cfg.ListenClientUrls = []url.URL{{Scheme: "http", Host: client}}
	cfg.AdvertiseClientUrls = cfg.ListenClientUrls
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer e.Close()
	fmt.Printf("listening %s\n", client)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	select {
	case <-stop:
		return nil
	case err := <-e.Err():
		return err
	}
}

// etcd is three members, the leader first.
type etcd struct {
	servers []*load.Server
	clients []*clientv3.Client // of the leader
}

// startEtcd starts the members and connects to their leader.
func startEtcd(r *part.Run) (*etcd, error) {
	addrs, err := freeAddrs(6)
	if err != nil {
		return nil, err
	}
	clients, peers := addrs[:3], addrs[3:]
	members := fmt.Sprintf("m0=http://%s,m1=http://%s,m2=http://%s", peers[0], peers[1], peers[2])
	e := &etcd{}
	for i := range 3 {
		name := fmt.Sprintf("m%d", i)
		s, err := r.Child(name, childMember, name, clients[i], peers[i], members, filepath.Join(r.Rig.Dir, "etcd-"+name))
		if err != nil {
			return nil, err
		}
		e.servers = append(e.servers, s)
	}
	if err := e.leaderFirst(); err != nil {
		return nil, err
	}
	most := sizes[len(sizes)-1]
	for range most.conns * most.depth / perConnection {
		c, err := connect(e.servers[0].Addr)
		if err != nil {
			e.close()
			return nil, err
		}
		e.clients = append(e.clients, c)
	}
	return e, nil
}

func connect(addr string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: putTimeout, Logger: zap.NewNop()})
}

// leaderFirst waits until a member leads the others.
func (e *etcd) leaderFirst() error {
	c, err := connect(e.servers[0].Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	return await("etcd has a leader", func() bool {
		i := slices.IndexFunc(e.servers, func(s *load.Server) bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			st, err := c.Status(ctx, s.Addr)
			return err == nil && st.Leader == st.Header.MemberId
		})
		if i >= 0 {
			e.servers[0], e.servers[i] = e.servers[i], e.servers[0]
		}
		return i >= 0
	})
}

func (e *etcd) close() {
	for _, c := range e.clients {
		_ = c.Close() // nothing is in flight
	}
}

func (e *etcd) cell(inFlight int) goal.Cell {
	return goal.Cell{Server: theirs, Method: putting, Conns: inFlight / perConnection, Depth: perConnection}
}

// put starts a load with so many puts in flight, under so many keys. What is in flight when it
// ends is waited for.
func (e *etcd) put(inFlight, keys int) *load.Calls {
	value := strings.Repeat("x", valueBytes)
	return load.StartCalls(inFlight, func(caller, nth int) error {
		ctx, cancel := context.WithTimeout(context.Background(), putTimeout)
		defer cancel()
		if _, err := e.clients[caller/perConnection].Put(ctx, load.PID((caller+nth*inFlight)%keys), value); err != nil {
			return fmt.Errorf("cannot put: %w", err)
		}
		return nil
	})
}
