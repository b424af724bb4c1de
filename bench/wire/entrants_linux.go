package main

import (
	"fmt"
	"os/exec"
	"strconv"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// Server names as they stand in the table.
const (
	trunkline = "trunkline"
	baregnet  = "baregnet"
	netconn   = "netconn"
	redcon    = "redcon"
	redis     = "redis"
	nats      = "nats"
	grpcgo    = "grpc-go"
	given     = "peer" // the server at -peer
)

// What the peers are asked, beside GetProcess.
const (
	get          = "GET"
	unary        = "unary"
	requestReply = "request-reply"
)

// natsSubject is what the program natsreply answers.
const natsSubject = "bench.get"

// entrant is a server that is measured in all of the grid, and what it is asked there.
type entrant struct {
	name, method string
	step         func(conns, depth int) goal.Step
}

// enter starts the peers, in the order of the table. Trunkline runs already.
func (f *field) enter() error {
	for _, start := range []func() error{f.enterGRPC, f.enterNATS, f.enterRedcon, f.enterRedis, f.enterNet, f.enterBare, f.enterPeer} {
		if err := start(); err != nil {
			return err
		}
	}
	f.enterKernel(f.trunk, trunkline)
	return nil
}

func (f *field) add(name, method string, step func(conns, depth int) goal.Step) {
	f.entrants = append(f.entrants, entrant{name, method, step})
}

// enterKernel adds a server that speaks the kernel protocol.
func (f *field) enterKernel(s *load.Server, name string) {
	f.add(name, evaluated, func(conns, depth int) goal.Step { return f.kernelStep(s, name, evaluated, conns, depth) })
}

func (f *field) replySize() string { return strconv.Itoa(f.replies[evaluated]) }

func (f *field) enterGRPC() error {
	s, err := f.peer("grpcunary", "-reply", f.replySize())
	if err != nil {
		return err
	}
	f.add(grpcgo, unary, func(conns, depth int) goal.Step {
		return goal.One(cell(grpcgo, unary, conns, depth), func() (goal.Sample, error) { return f.grpcCell(s, conns, depth) })
	})
	return nil
}

func (f *field) enterNATS() error {
	s, err := f.peer("natsreply", "-reply", f.replySize())
	if err != nil {
		return err
	}
	f.add(nats, requestReply, func(conns, depth int) goal.Step {
		return f.loadStep(s, nats, requestReply, load.NATS, natsTapes(conns), depth)
	})
	return nil
}

func (f *field) enterRedcon() error {
	s, err := f.peer("redconget")
	if err != nil {
		return err
	}
	return f.enterGet(s, redcon)
}

// enterRedis starts redis-server where it is installed; a path that was asked for has to be one.
func (f *field) enterRedis() error {
	if f.o.redis == "off" {
		return nil
	}
	name := f.o.redis
	if name == "auto" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err != nil && f.o.redis == "auto" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot find redis: %w", err)
	}
	s, err := f.Redis(redis, path, "--save", "", "--appendonly", "no")
	if err != nil {
		return err
	}
	return f.enterGet(s, redis)
}

// enterGet adds a server that speaks RESP, and stores its rows.
func (f *field) enterGet(s *load.Server, name string) error {
	f.add(name, get, func(conns, depth int) goal.Step {
		return f.loadStep(s, name, get, load.RESP, redisTapes(f.o.rows, conns), depth)
	})
	return storeRows(s.Addr, f.o.rows)
}

func (f *field) enterNet() error {
	s, err := f.peer(netconn, "-reply", f.replySize())
	if err == nil {
		f.enterKernel(s, netconn)
	}
	return err
}

// enterBare starts one baregnet per reply size, so that each method is compared with a constant
// reply as long as its own.
func (f *field) enterBare() (err error) {
	for _, size := range f.replies {
		if f.bare[size] != nil {
			continue
		}
		if f.bare[size], err = f.peer(baregnet, "-reply", strconv.Itoa(size), "-loops", strconv.Itoa(f.o.loops)); err != nil {
			return err
		}
	}
	f.enterKernel(f.bare[f.replies[evaluated]], baregnet)
	return nil
}
