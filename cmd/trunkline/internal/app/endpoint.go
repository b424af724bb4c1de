package app

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/cmd/trunkline/internal/monitor"
	"trunkline/codec/frame"
	"trunkline/engine/connection"
	"trunkline/engine/runtime"
	"trunkline/engine/stream"
	"trunkline/handlers/ipc"
)

// endpoint is the kernel IPC service with everything that moves its bytes.
type endpoint struct {
	*listener
	rt          *runtime.Runtime
	svc         *ipc.Service
	store       *storage
	beforeStore func() // returns when there is no other writer to the store any more; may be nil
	options     Options
	whole       atomic.Bool // the service may be asked for its counters: during recovery a look at the table would age its leases
}

// openEndpoint binds every address of kernel.listen_addr or none. Nothing is accepted before Serve,
// and nothing is read from the store before Recover: clients may connect, and wait.
func openEndpoint(cfg *config.Config, o Options) (_ *endpoint, err error) {
	rt := runtime.New(runtimeConfig(cfg, o))
	k, l := &cfg.Kernel, &listener{
		label:    "kernel ipc",
		section:  "kernel",
		protocol: protocolIPC,
		service:  kernelService,
		access:   &cfg.Kernel.Access,
		name:     o.named(protocolIPC),
		legs:     o.cluster.Several(),
		most:     func(c *config.Config) int { return o.cluster.Legs(c.Kernel.MaxConnections) },
	}
	e := &endpoint{listener: l, rt: rt, svc: ipc.NewService(serviceConfig(cfg, o), rt), options: o}
	if e.store, err = newStorage(&cfg.Store, rt, o); err != nil {
		return nil, err
	}
	if !l.legs { // else the router has the addresses
		if err = l.bind(o, false); err != nil {
			return nil, err
		}
	}
	err = l.startLoops(o.loops(k.Loops), stream.Config{
		MaxConnections: l.most(cfg), Limits: limits(k), Open: e.svc.Open, Refuse: e.svc.AppendRefusal,
	}, monitor.Frames(k.MaxFrameBytes), o)
	if err != nil {
		closeAll(e.bound)
		return nil, err
	}
	return e, nil
}

// recover reads the store, if there is one. It returns early when ctx ends or failed brings an
// error, with the reason.
func (e *endpoint) recover(ctx context.Context, failed <-chan error) error {
	if e.store != nil {
		if err := e.store.recover(ctx, failed); err != nil {
			return err
		}
	} else if err := e.rt.OpenRows("", nil); err != nil {
		return err
	}
	e.whole.Store(true)
	return nil
}

// serve starts answering on every listener. An accept loop that ends by itself is reported.
func (e *endpoint) serve(report func(error)) {
	e.rt.Start()
	e.listener.serve(report)
}

// shutdown drains (kernel-ipc §2.7) and waits until everything has ended or ctx has.
func (e *endpoint) shutdown(ctx context.Context) error {
	err := e.listener.shutdown(ctx)
	if e.beforeStore != nil {
		e.beforeStore()
	}
	e.rt.Close()
	e.options.lease.Release(e.rt.Store)
	return errors.Join(err, e.store.Close(), e.rt.CloseRows())
}

// abort ends an endpoint that never served.
func (e *endpoint) abort() {
	if e == nil {
		return
	}
	e.listener.abort()
	_ = e.store.Close()
	_ = e.rt.CloseRows()
}

// named returns what the names of connections of a partition begin with.
func (o *Options) named(protocol string) string {
	if !o.cluster.Several() {
		return protocol
	}
	return fmt.Sprintf("%s.%d", protocol, o.lease.Partition())
}

// loops returns how many event loops a partition has: where there are several partitions, its
// connections come by the router, and none needs a loop.
func (o *Options) loops(wanted int) int {
	if o.cluster.Several() {
		return 1
	}
	return wanted
}

// protocolIPC is the protocol of the kernel endpoint, as lists of connections have it.
const protocolIPC = "ipc"

func limits(k *config.Kernel) connection.Limits {
	return connection.Limits{
		IdleAfter:   int64(k.ReadTimeout),
		FrameWithin: int64(k.ReadTimeout),
		SendWithin:  int64(k.WriteTimeout),
		DrainWithin: int64(k.ShutdownGrace),
		UnsentBytes: connection.DefaultUnsentBytes,
		ChunkBytes:  connection.DefaultChunkBytes,
		FrameBytes:  k.MaxFrameBytes + frame.PrefixSize,
	}
}

// serviceConfig completes the settings of the service.
func serviceConfig(cfg *config.Config, o Options) ipc.Config {
	c := cfg.Kernel.Config
	c.Version, c.Recorder = o.Build.Version, o.recorder
	return c
}

// runtimeConfig completes the settings of the state machines. Where they read zero as "default",
// the settings' own zero becomes the smallest value that means the same.
func runtimeConfig(cfg *config.Config, o Options) runtime.Config {
	c := cfg.Kernel.RuntimeConfig
	if c.DequeueLease == 0 {
		c.DequeueLease = -1
	}
	for _, d := range []*time.Duration{&c.ProcessRetention, &c.EnvelopeRetention, &c.SessionRetention} {
		*d = max(*d, time.Nanosecond)
	}
	c.SmallPages = !cfg.Kernel.HugePages
	c.Logger = o.Logger
	c.Journaled = cfg.Store.Mode != config.StoreMemory
	c.IdempotencyTTL = cfg.Toolhost.IdempotencyTTL
	c.SnapshotBytes, c.SnapshotInterval = cfg.Store.SnapshotBytes, cfg.Store.SnapshotInterval
	c.Partitions, c.Partition = o.cluster.Partitions(), o.lease.Partition()
	c.Threads = threadsConfig(&cfg.Threads, o)
	return c
}
