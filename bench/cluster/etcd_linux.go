package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
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

// runMember is a member of etcd until SIGTERM: its name, the address for clients, the members, and
// its directory.
func runMember(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("cannot be a member with %d arguments, want 4", len(args))
	}
	name, client, members, dir := args[0], args[1], args[2], args[3]
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir, cfg.InitialCluster, cfg.LogLevel = name, dir, members, "error"
	cfg.ElectionMs = uint(steadyElection.Milliseconds())
	for _, member := range strings.Split(members, ",") {
		if id, peer, _ := strings.Cut(member, "="); id == name {
			at, err := url.Parse(peer)
			if err != nil {
				return err
			}
			cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*at}, []url.URL{*at}
		}
	}
	at := url.URL{Scheme: "http", Host: client}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{at}, []url.URL{at}
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
	var members, addrs []string
	for i := range 3 {
		peer, err := freeAddr()
		if err != nil {
			return nil, err
		}
		client, err := freeAddr()
		if err != nil {
			return nil, err
		}
		members, addrs = append(members, fmt.Sprintf("m%d=http://%s", i, peer)), append(addrs, client)
	}
	e := &etcd{}
	for i, addr := range addrs {
		name := fmt.Sprintf("m%d", i)
		s, err := r.Child(name, childMember, name, addr, strings.Join(members, ","), filepath.Join(r.Rig.Dir, "etcd-"+name))
		if err != nil {
			return nil, err
		}
		e.servers = append(e.servers, s)
	}
	for i, s := range e.servers {
		leads, err := e.lead(s)
		if err != nil {
			return nil, errors.Join(err, e.close())
		}
		if leads {
			e.servers[0], e.servers[i] = e.servers[i], e.servers[0]
			break
		}
	}
	most := sizes[len(sizes)-1]
	for range most.conns * most.depth / perConnection {
		c, err := connect(e.servers[0].Addr)
		if err != nil {
			return nil, errors.Join(err, e.close())
		}
		e.clients = append(e.clients, c)
	}
	return e, nil
}

func connect(addr string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: putTimeout, Logger: zap.NewNop()})
}

// lead reports whether a member leads the others. It waits until there is a leader.
func (e *etcd) lead(s *load.Server) (leads bool, err error) {
	c, err := connect(s.Addr)
	if err != nil {
		return false, err
	}
	defer c.Close()
	err = await("etcd has a leader", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		st, err := c.Status(ctx, s.Addr)
		leads = err == nil && st.Leader == st.Header.MemberId
		return err == nil && st.Leader != 0
	})
	return leads, err
}

func (e *etcd) close() error {
	var all error
	for _, c := range e.clients {
		all = errors.Join(all, c.Close())
	}
	return all
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
