// Package storage measures what durability costs over the real wire (goals G12 to G14, durability
// §7), how soon a large table is back after SIGKILL (G16), and agent threads and projects beside
// what does as much elsewhere.
//
//	go run ./bench store restart       six minutes
//	go run ./bench restart -rows 100000
//	go run ./bench threads projects    three minutes
//
// CreateProcess gets a fresh server for each cell, so that no table of an earlier cell weighs on
// it. The bare group-commit loop is one event loop on one thread as redis is one, level-triggered
// epoll: each turn reads up to 16 KiB from every connection that is ready, appends 300 bytes for
// each kernel frame to one plain file by one write(2) and one fdatasync(2), and sends all replies,
// one write for each connection. It checks nothing and keeps no state: whatever keeps state does
// more. In everysec it answers after write(2) and a second thread syncs each second; while that
// runs the write waits up to two seconds, as in redis. redis-server gets SET of 300 bytes.
//
// A restart is SIGKILL and a start on the same directory until a request is answered. Files come
// out of the page cache. Then requests are sent, at 30 % of what the server did with one in flight
// on each of 64 connections, in bursts of a millisecond, and counted apart by whether they were due
// while a snapshot was being written. A latency counts from the time the request was due.
//
// Agent threads are measured in mode always, posts over lines beside RecordUsage of the kernel
// protocol on a server of its own. The bare handler of net/http waits for no disk. What MCP costs
// beside the handler of the Go SDK is the benchmark in handlers/threads/mcp. The server of the
// TypeScript SDK (node.mjs) answers a constant. Events of projects and of the message bus have
// about as many bytes: what is compared is the CPU time for each event delivered, that of what
// makes it included.
package storage

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

type size struct{ conns, depth int }

func (s size) String() string { return fmt.Sprintf("%d×%d", s.conns, s.depth) }

// The sizes of the goals: few and many connections, with one request in flight and with more.
var (
	few, many         = size{64, 1}, size{1024, 1}
	fewDeep, manyDeep = size{64, 16}, size{1024, 16}

	allSizes = []size{few, many, fewDeep, manyDeep}
	shallow  = []size{{1, 1}, {8, 1}, few}
	thousand = []size{many, fewDeep} // with 1024 requests in flight
)

func cell(server, method string, at size) goal.Cell {
	return goal.Cell{Server: server, Method: method, Conns: at.conns, Depth: at.depth}
}

func common(p part.Part) part.Part {
	p.Disk = true
	p.Defaults = func(o *part.Options) { o.Warmup, o.Window, o.Spin = 250*time.Millisecond, time.Second, false }
	p.Quick = func(o *part.Options) { o.Warmup, o.Window = 100*time.Millisecond, 300*time.Millisecond }
	return p
}

// settings are those of a server in a mode, with room for the load.
func settings(r *part.Run, mode string, more ...string) []string {
	return append([]string{"store.mode=" + mode, "kernel.loops=" + strconv.Itoa(r.Loops), "kernel.max_connections=" + strconv.Itoa(2*many.conns),
		"kernel.max_processes=10000000", "kernel.max_envelopes=100000"}, more...)
}

type bench struct {
	*part.Run
	steps []goal.Step
	after []func() error // goals and profiles
}

// add adds a cell of that server and method, of the size of the load.
func (b *bench) add(server, method string, s *load.Server, cfg load.Config) goal.Cell {
	c := cell(server, method, size{len(cfg.Tapes), cfg.Depth})
	b.steps = append(b.steps, b.Step(c, s, cfg))
	return c
}

func (b *bench) profile(name string, s *load.Server, cfg load.Config) {
	b.after = append(b.after, func() error { return b.Profiled(name, s, cfg) })
}

// compare adds the goal that one cell has so many times the requests/s of another; 0 only reports
// them.
func (b *bench) compare(what string, must float64, ours, theirs goal.Cell) {
	b.after = append(b.after, func() error {
		g := goal.Goal{What: fmt.Sprintf("%s: %s, %d×%d", b.Report.Part, what, ours.Conns, ours.Depth), Must: must, AtLeast: true}
		g.AddCPU("requests/s", b.Report.Ratio(ours, theirs, goal.Rate), b.Report.Ratio(theirs, ours, goal.CPU))
		b.Report.Goal(g)
		return nil
	})
}

func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// measure takes the first steps, which start the servers and add cells, has the cells take turns,
// and ends with goals and profiles.
func (b *bench) measure(first ...func() error) error {
	return inOrder(append(first, func() error { return b.Rounds(b.steps) }, func() error { return inOrder(b.after...) })...)
}

// Part measures what durability costs.
func Part() part.Part {
	return common(part.Part{
		Name: "store", What: "what durability costs, beside a bare group-commit loop, redis and memory (G12, G13, G14)",
		Children: map[string]func([]string) error{childLoop: runLoop},
		Run: func(r *part.Run) error {
			f := &field{bench: bench{Run: r}, trunk: map[string]*load.Server{}, envelopes: map[string][]string{}}
			return inOrder(func() error { return f.measure(f.startModes, f.startPeers, f.addCells) }, f.paced, func() error { return conclude(r.Report) })
		},
	})
}

type field struct {
	bench
	trunk     map[string]*load.Server // by mode
	envelopes map[string][]string     // identifiers stored there
	redis     *load.Server            // in always; nil: there is none
	peers     []func(at size)         // they add the cells of a peer
}

func (f *field) startModes() error {
	for _, mode := range []string{memory, interval, always} {
		s, err := f.Trunkline(settings(f.Run, mode)...)
		if err != nil {
			return err
		}
		f.trunk[mode] = s
		if err := prepare(s.Addr, f.Rows); err != nil {
			return err
		}
		for i := range envelopes {
			who := load.Identifier('e', i)
			id, err := load.CreateEnvelope(s.Addr, "request_id", who, "user_id", who, "session_id", who)
			if err != nil {
				return err
			}
			f.envelopes[mode] = append(f.envelopes[mode], id)
		}
	}
	return nil
}

func (f *field) startPeers() error {
	for _, p := range [][3]string{{loopAlways, redisAlways, "always"}, {loopEverysec, redisEverysec, "everysec"}} {
		bare, err := f.Child(p[0], childLoop, p[2], filepath.Join(f.Rig.Dir, "appended-"+p[2]))
		if err != nil {
			return err
		}
		redis, err := f.StartRedis(p[1], "--save", "", "--appendonly", "yes", "--appendfsync", p[2], "--auto-aof-rewrite-percentage", "0",
			"--maxclients", strconv.Itoa(2*many.conns))
		if err != nil {
			return err
		}
		f.redis = cmp.Or(f.redis, redis)
		f.peers = append(f.peers, func(at size) {
			f.add(p[0], appendRecord, bare, f.Config(bare.Addr, load.Kernel, tapesOf(recordUsage, f.rows(at), at.conns, nil), at.depth))
			if redis != nil {
				f.add(p[1], appendRecord, redis, f.sets(redis, at))
			}
		})
	}
	return nil
}

// sets is the load of redis.
func (f *field) sets(s *load.Server, at size) load.Config {
	return f.Config(s.Addr, load.RESP, redisTapes(f.rows(at), at.conns), at.depth)
}

// usages is the load of a mode.
func (f *field) usages(mode, method string, at size) load.Config {
	return f.Config(f.trunk[mode].Addr, load.Kernel, tapesOf(method, f.rows(at), at.conns, f.envelopes[mode]), at.depth)
}

// addCells adds the cells of one round: whatever a goal compares stands close together.
func (f *field) addCells() error {
	add := func(mode, method string, at size) load.Config {
		cfg := f.usages(mode, method, at)
		f.add(mode, method, f.trunk[mode], cfg)
		return cfg
	}
	for _, at := range allSizes {
		for _, peer := range f.peers {
			peer(at)
		}
		usage := add(always, recordUsage, at)
		add(interval, recordUsage, at)
		add(memory, recordUsage, at)
		if !slices.Contains(thousand, at) {
			continue
		}
		f.profile(fmt.Sprintf("%s-%dx%d", recordUsage, at.conns, at.depth), f.trunk[always], usage)
		for _, method := range []string{transitionState, updateEnvelope, checkRateLimit} {
			add(always, method, at)
			add(memory, method, at)
		}
		f.steps = append(f.steps, f.fresh(always, at), f.fresh(memory, at))
	}
	for _, at := range shallow[:2] {
		if add(always, recordUsage, at); f.redis != nil {
			f.add(redisAlways, appendRecord, f.redis, f.sets(f.redis, at))
		}
	}
	return nil
}

// paced adds durable calls with one in flight that come by their own clock, so often that both
// servers have time to spare: half as often as the slower one answers them.
func (f *field) paced() error {
	if f.redis == nil {
		return nil
	}
	var steps []goal.Step
	for _, at := range shallow {
		add := func(server string, s *load.Server, cfg load.Config) {
			cfg.PerSec = min(f.Report.Median(cell(always, recordUsage, at), goal.Rate), f.Report.Median(cell(redisAlways, appendRecord, at), goal.Rate)) / 2
			steps = append(steps, goal.One(cell(server, paced, at), func() (goal.Sample, error) { return load.Measure(cfg, s, f.Warmup, 2*f.Window) }))
		}
		add(always, f.trunk[always], f.usages(always, recordUsage, at))
		add(redisAlways, f.redis, f.sets(f.redis, at))
	}
	return f.Rounds(steps)
}

// rows returns the half of the table that a size works on: tapes of two sizes must not move the
// same rows. Every server has tapes of its own, as a tape remembers where its server's rows stand.
func (f *field) rows(at size) span {
	half := f.Rows / 2
	if at.conns == many.conns {
		return span{0, half}
	}
	return span{half, 2 * half}
}

// fresh measures CreateProcess with a server that begins with an empty table and an empty store.
func (f *field) fresh(mode string, at size) goal.Step {
	return goal.One(cell(mode, createProcess, at), func() (goal.Sample, error) {
		s, err := f.Trunkline(settings(f.Run, mode)...)
		if err != nil {
			return goal.Sample{}, err
		}
		defer s.Stop()
		return load.Measure(f.Config(s.Addr, load.Kernel, freshTapes(at.conns), at.depth), s, f.Warmup, f.Window)
	})
}

const (
	always        = "always"
	interval      = "interval"
	memory        = "memory"
	loopAlways    = "bare loop, always"
	loopEverysec  = "bare loop, everysec"
	redisAlways   = "redis, always"
	redisEverysec = "redis, everysec"
	paced         = "paced" // the method of its cells
)

// done is what a server does where trunkline does a method.
func done(server, method string) string {
	if slices.Contains([]string{always, interval, memory}, server) {
		return method
	}
	return appendRecord
}

// conclude evaluates what durability may cost (performance G12 to G14, durability §7), reports
// ratios beside that (what mode memory reaches beside a peer bounds what a durable mode can), and
// shows in one table what each mode and each peer made of RecordUsage, or of as much.
func conclude(r *part.Report) error {
	ratio := func(ours, theirs, method string, at size, of func(goal.Sample) float64) float64 {
		return r.Ratio(cell(ours, method, at), cell(theirs, done(theirs, method), at), of)
	}
	ask := func(id, what, ours, theirs string, must, moonshot float64, sizes []size, methods ...string) {
		if len(sizes) == 1 {
			what += " at " + sizes[0].String()
		}
		g := goal.Goal{ID: id, What: fmt.Sprintf("%s, requests/s of %s / %s", what, ours, theirs), Must: must, Moonshot: moonshot, AtLeast: true}
		for _, at := range sizes {
			for _, m := range methods {
				g.Add(m+" "+at.String(), ratio(ours, theirs, m, at, goal.Rate))
			}
		}
		r.Goal(g)
	}
	for i, at := range []size{few, fewDeep} {
		cpu := goal.Goal{ID: "G12", What: "durable path at " + at.String() + ", server CPU per request of always / memory", Must: []float64{1.4, 1.6}[i], Moonshot: 1.25}
		cpu.Add(recordUsage, ratio(always, memory, recordUsage, at, goal.CPU))
		r.Goal(cpu)
	}
	others := []string{transitionState, createProcess, updateEnvelope}
	for i, at := range allSizes {
		here := []size{at}
		ask("G13", "durable path", always, loopAlways, 0.95, 1, here, recordUsage)
		ask("G14", "durable path", always, redisAlways, []float64{1.1, 1.05, 2, 2.2}[i], []float64{1.3, 1.1, 2.5, 2.5}[i], here, recordUsage)
		ask("", "lazy sync", interval, redisEverysec, []float64{1.05, 1.05, 1.8, 2}[i], 0, here, recordUsage)
	}
	ask("", "other durable methods", always, redisAlways, 0.9, 1.2, thousand, others...)
	ask("", "durable methods", always, memory, 0.6, 0, thousand, append(others, recordUsage)...)
	ask("", "a lazy method", always, memory, 0.85, 0, thousand, checkRateLimit)
	ask("", "lazy sync", interval, loopEverysec, 0, 0, allSizes, recordUsage)
	ask("", "other durable methods", always, loopAlways, 0, 0, thousand, others...)
	for _, peer := range []string{loopAlways, redisAlways} {
		ask("", "the bound of these", memory, peer, 0, 0, allSizes, recordUsage)
	}
	table := goal.Grid{Title: "what durability costs: requests/s, and server CPU µs/request", Head: []string{"server"}}
	for _, at := range allSizes {
		table.Head = append(table.Head, at.String()+"/s", "CPU µs")
	}
	for _, server := range []string{loopAlways, redisAlways, always, loopEverysec, redisEverysec, interval, memory} {
		row := []any{server}
		for _, at := range allSizes {
			c := cell(server, done(server, recordUsage), at)
			row = append(row, r.Median(c, goal.Rate), r.Median(c, goal.CPU)/1e3)
		}
		table.Add(row...)
	}
	r.Table(table)
	latency := goal.Grid{Title: "a durable call with one in flight on each connection, at half of the load: µs",
		Head: []string{"connections", "requests/s", "p50", "p99", "p50 of redis", "p99 of redis"}}
	for _, at := range shallow {
		ours, theirs := cell(always, paced, at), cell(redisAlways, paced, at)
		row := []any{at.conns, r.Median(ours, goal.Rate)}
		for _, c := range []goal.Cell{ours, theirs} {
			row = append(row, r.Median(c, func(s goal.Sample) float64 { return s.P50 }), r.Median(c, func(s goal.Sample) float64 { return s.P99 }))
		}
		latency.Add(row...)
	}
	r.Table(latency)
	return nil
}
