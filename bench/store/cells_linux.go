package main

import (
	"os"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// size is connections by requests in flight on each.
type size struct{ conns, depth int }

// few and many are the sizes of the goals that compare with a peer; the deep ones have more in
// flight.
func few() size      { return size{64, 1} }
func many() size     { return size{manyConns, 1} }
func fewDeep() size  { return size{64, deep} }
func manyDeep() size { return size{manyConns, deep} }

// deep is how many requests are in flight on a connection of the deep sizes.
const deep = 16

// allSizes are those of the peers; thousand are those with 1024 requests in flight.
func allSizes() []size { return []size{few(), many(), fewDeep(), manyDeep()} }
func thousand() []size { return []size{many(), fewDeep()} }

// durableMethods are compared between mode always and memory, wherever 1024 are in flight.
func durableMethods() []string {
	return []string{recordUsage, transitionState, createProcess, updateEnvelope}
}

// field is every server of the cells.
type field struct {
	*bench
	trunk     map[string]*load.Server // by mode
	envelopes map[string][]string     // identifiers stored there
	peers     []*load.Server
	redis     []*load.Server
}

// cells starts the servers, has them take turns, and ends them.
func (b *bench) cells(r *report) error {
	f := &field{bench: b, trunk: map[string]*load.Server{}, envelopes: map[string][]string{}}
	if err := f.start(); err != nil {
		return err
	}
	disk := goal.Step{Name: "bare writes", Measure: func() ([]goal.Sample, error) { return nil, r.disk.measure(b.Dir) }}
	all, err := goal.Rounds(b.o.rounds, append([]goal.Step{disk}, f.steps()...), os.Stderr)
	r.samples = append(r.samples, all...)
	b.StopAll()
	return err
}

func (f *field) start() error {
	for _, mode := range []string{memory, interval, always} {
		s, err := f.trunkline(mode, f.newStore())
		if err != nil {
			return err
		}
		f.trunk[mode] = s
		if err := prepare(s.Addr, f.o.rows); err != nil {
			return err
		}
		if mode == interval {
			continue // its goal is about RecordUsage alone
		}
		if f.envelopes[mode], err = makeEnvelopes(s.Addr, envelopes); err != nil {
			return err
		}
	}
	for _, p := range [][2]string{{loopAlways, "always"}, {loopEverysec, "everysec"}} {
		s, err := f.startPeer(p[0], p[1])
		if err != nil {
			return err
		}
		f.peers = append(f.peers, s)
	}
	path, err := f.redisPath()
	if err != nil || path == "" {
		return err
	}
	for _, p := range [][2]string{{redisAlways, "always"}, {redisEverysec, "everysec"}} {
		s, err := f.startRedis(path, p[0], p[1])
		if err != nil {
			return err
		}
		f.redis = append(f.redis, s)
	}
	return nil
}

// steps lists the cells of one round: whatever a goal compares stands close together.
func (f *field) steps() (steps []goal.Step) {
	for _, at := range allSizes() {
		for _, s := range f.peers {
			steps = append(steps, f.loadStep(s, s.Name, appendRecord, load.Kernel, tapesOf(recordUsage, f.rows(at), at.conns, nil), at))
		}
		for _, s := range f.redis {
			steps = append(steps, f.loadStep(s, s.Name, "SET", load.RESP, redisTapes(f.rows(at), at.conns), at))
		}
		for _, mode := range []string{always, interval, memory} {
			steps = append(steps, f.kernelStep(mode, recordUsage, at))
		}
		if at.conns*at.depth != manyConns {
			continue
		}
		for _, method := range []string{transitionState, updateEnvelope, checkRateLimit} {
			steps = append(steps, f.kernelStep(always, method, at), f.kernelStep(memory, method, at))
		}
		steps = append(steps, f.freshStep(always, at), f.freshStep(memory, at))
	}
	return steps
}

// rows returns the half of the table that a size works on: tapes of two sizes must not move the
// same rows.
func (f *field) rows(at size) span {
	half := f.o.rows / 2
	if at.conns == manyConns {
		return span{0, half}
	}
	return span{half, 2 * half}
}

// kernelStep gives every server tapes of its own: a tape remembers where its server's rows stand.
func (f *field) kernelStep(mode, method string, at size) goal.Step {
	var ids []string
	if method == updateEnvelope {
		ids = f.envelopes[mode]
	}
	return f.loadStep(f.trunk[mode], mode, method, load.Kernel, tapesOf(method, f.rows(at), at.conns, ids), at)
}

func (f *field) loadStep(s *load.Server, name, method string, p load.Protocol, tapes []*load.Tape, at size) goal.Step {
	cfg := f.config(s.Addr, p, tapes, at.depth)
	return goal.One(cell(name, method, at), func() (goal.Sample, error) { return load.Measure(cfg, s, f.o.warmup, f.o.window) })
}

// freshStep measures CreateProcess with a server that begins with an empty table and an empty
// store.
func (f *field) freshStep(mode string, at size) goal.Step {
	return goal.One(cell(mode, createProcess, at), func() (goal.Sample, error) {
		dir := f.newStore()
		defer os.RemoveAll(dir)
		s, err := f.trunkline(mode, dir)
		if err != nil {
			return goal.Sample{}, err
		}
		defer s.Stop()
		return load.Measure(f.config(s.Addr, load.Kernel, freshTapes(at.conns), at.depth), s, f.o.warmup, f.o.window)
	})
}
