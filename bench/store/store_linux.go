package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

// size is connections by requests in flight on each.
type size struct{ conns, depth int }

func (s size) String() string { return fmt.Sprintf("%d×%d", s.conns, s.depth) }

// The sizes of the goals: few and many connections, with one request in flight and with more.
var (
	few, many         = size{64, 1}, size{1024, 1}
	fewDeep, manyDeep = size{64, 16}, size{1024, 16}

	allSizes = []size{few, many, fewDeep, manyDeep}
	thousand = []size{many, fewDeep} // with 1024 requests in flight
)

// cell is a server under the load of a method at a size.
func cell(server, method string, at size) goal.Cell {
	return goal.Cell{Server: server, Method: method, Conns: at.conns, Depth: at.depth}
}

// common is a part with what all of this package have in common.
func common(p part.Part) part.Part {
	p.Disk, p.Files = true, func(*part.Options) uint64 { return 8 * uint64(many.conns) }
	p.Defaults = func(o *part.Options) { o.Warmup, o.Window, o.Spin = 250*time.Millisecond, time.Second, false }
	p.Quick = func(o *part.Options) { o.Warmup, o.Window = 100*time.Millisecond, 300*time.Millisecond }
	return p
}

// settings are those of a server in a mode, with room for the load.
func settings(r *part.Run, mode string, more ...string) []string {
	return append([]string{"store.mode=" + mode, "kernel.loops=" + strconv.Itoa(r.Loops), "kernel.max_connections=" + strconv.Itoa(2*many.conns),
		"kernel.max_processes=10000000", "kernel.max_envelopes=100000"}, more...)
}

// bench is a part whose cells take turns.
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

// profile keeps a profile of a load when all is measured.
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

// inOrder takes steps until one fails.
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
			return inOrder(func() error { return f.measure(f.startModes, f.startPeers, f.addCells) }, func() error { return conclude(r.Report) })
		},
	})
}

// field is every server of the cells.
type field struct {
	bench
	trunk     map[string]*load.Server // by mode
	envelopes map[string][]string     // identifiers stored there
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
		if f.envelopes[mode], err = makeEnvelopes(s.Addr); err != nil {
			return err
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
		f.peers = append(f.peers, func(at size) {
			f.add(p[0], appendRecord, bare, f.Config(bare.Addr, load.Kernel, tapesOf(recordUsage, f.rows(at), at.conns, nil), at.depth))
			if redis != nil {
				f.add(p[1], appendRecord, redis, f.Config(redis.Addr, load.RESP, redisTapes(f.rows(at), at.conns), at.depth))
			}
		})
	}
	return nil
}

// addCells adds the cells of one round: whatever a goal compares stands close together.
func (f *field) addCells() error {
	f.steps = []goal.Step{f.bareWrite(4 << 10), f.bareWrite(64 << 10)}
	add := func(mode, method string, at size) load.Config {
		cfg := f.Config(f.trunk[mode].Addr, load.Kernel, tapesOf(method, f.rows(at), at.conns, f.envelopes[mode]), at.depth)
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
	return nil
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

// bareWrites is how many writes there are of each size in a round.
const bareWrites = 60

// bareWrite measures writes to a file beside the stores, each with a sync, as context for all of
// it.
func (f *field) bareWrite(size int) goal.Step {
	c := goal.Cell{Server: "disk", Method: fmt.Sprintf("write and sync %d KiB", size>>10), Conns: 1, Depth: 1}
	return goal.One(c, func() (goal.Sample, error) {
		file, err := os.CreateTemp(f.Rig.Dir, "bare-")
		if err != nil {
			return goal.Sample{}, err
		}
		defer os.Remove(file.Name())
		defer file.Close()
		var took []float64
		block, begun := bytes.Repeat([]byte{0xa5}, size), time.Now()
		for range bareWrites {
			start := time.Now()
			_, err := file.Write(block)
			if err = errors.Join(err, unix.Fdatasync(int(file.Fd()))); err != nil {
				return goal.Sample{}, err
			}
			took = append(took, goal.Micros(time.Since(start)))
		}
		return goal.Sample{Requests: bareWrites, PerSec: bareWrites / time.Since(begun).Seconds(), P50: goal.Quantile(took, 0.5), P99: goal.Quantile(took, 0.99)}, nil
	})
}
