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

// Server names as they stand in the tables: modes of trunkline, and peers.
const (
	always        = "always"
	interval      = "interval"
	memory        = "memory"
	loopAlways    = "bare loop, always"
	loopEverysec  = "bare loop, everysec"
	redisAlways   = "redis, always"
	redisEverysec = "redis, everysec"
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

// leastRows is what two sets of tapes need that must not move the same rows.
const leastRows = 2 * 1024

// cell is a server under the load of a method at a size.
func cell(server, method string, at size) goal.Cell {
	return goal.Cell{Server: server, Method: method, Conns: at.conns, Depth: at.depth}
}

// common is a part with what all of this package have in common.
func common(p part.Part) part.Part {
	p.Disk, p.Files = true, func(*part.Options) uint64 { return 8 * uint64(many.conns) }
	p.Defaults = func(o *part.Options) { o.Warmup, o.Window, o.Spin = 250*time.Millisecond, time.Second, false }
	p.Quick = func(o *part.Options) { o.Warmup, o.Window = 100*time.Millisecond, 300*time.Millisecond }
	run := p.Run
	p.Run = func(r *part.Run) error {
		if r.Rows < leastRows {
			return fmt.Errorf("cannot measure %d rows: want %d at least", r.Rows, leastRows)
		}
		return run(r)
	}
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
	steps    []goal.Step
	profiles []func() error
}

// add adds a cell. Its profile is kept under that name, if it is not empty.
func (b *bench) add(c goal.Cell, s *load.Server, cfg load.Config, profile string) {
	b.steps = append(b.steps, b.Step(c, s, cfg))
	if profile != "" {
		b.profiles = append(b.profiles, func() error { return b.Profiled(profile, s, cfg) })
	}
}

// measure takes the first steps, which start the servers and add cells, then the cells in turns,
// and evaluates what came out.
func (b *bench) measure(goals func([]goal.Sample) []goal.Goal, first ...func() error) error {
	for _, step := range first {
		if err := step(); err != nil {
			return err
		}
	}
	if err := b.Rounds(b.steps); err != nil {
		return err
	}
	for _, g := range goals(b.Report.Samples) {
		b.Report.Goal(g)
	}
	for _, profile := range b.profiles {
		if err := profile(); err != nil {
			return err
		}
	}
	return nil
}

// Part measures what durability costs.
func Part() part.Part {
	return common(part.Part{
		Name: "store", What: "what durability costs, beside a bare group-commit loop, redis and memory (G12, G13, G14)",
		Children: map[string]func([]string) error{childLoop: runLoop},
		Run: func(r *part.Run) error {
			f := &field{bench: bench{Run: r}, trunk: map[string]*load.Server{}, envelopes: map[string][]string{}, bare: map[int][]float64{}}
			if err := f.measure(goals, f.startModes, f.startPeers, f.addCells); err != nil {
				return err
			}
			r.Report.Table(durability(r.Report.Samples))
			r.Report.Table(f.disk())
			return nil
		},
	})
}

// field is every server of the cells.
type field struct {
	bench
	trunk     map[string]*load.Server // by mode
	envelopes map[string][]string     // identifiers stored there
	peers     []peer
	bare      map[int][]float64 // microseconds of bare writes, by their bytes
}

// peer is a server that is asked for one thing.
type peer struct {
	*load.Server
	method   string
	protocol load.Protocol
	tapes    func(rows span, conns int) []*load.Tape
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
	appends := func(rows span, conns int) []*load.Tape { return tapesOf(recordUsage, rows, conns, nil) }
	for _, p := range [][3]string{{loopAlways, redisAlways, "always"}, {loopEverysec, redisEverysec, "everysec"}} {
		bare, err := f.Child(p[0], childLoop, p[2], filepath.Join(f.Rig.Dir, "appended-"+p[2]))
		if err != nil {
			return err
		}
		f.peers = append(f.peers, peer{bare, appendRecord, load.Kernel, appends})
		redis, err := f.StartRedis(p[1], "--save", "", "--appendonly", "yes", "--appendfsync", p[2], "--auto-aof-rewrite-percentage", "0",
			"--maxclients", strconv.Itoa(2*many.conns))
		if err != nil {
			return err
		}
		if redis != nil {
			f.peers = append(f.peers, peer{redis, setValue, load.RESP, redisTapes})
		}
	}
	return nil
}

// addCells adds the cells of one round: whatever a goal compares stands close together.
func (f *field) addCells() error {
	f.steps = append(f.steps, goal.Step{Name: "bare writes", Measure: f.bareWrites})
	add := func(method string, at size, modes ...string) {
		for _, m := range modes {
			profile := ""
			if m == always && method == recordUsage && slices.Contains(thousand, at) {
				profile = fmt.Sprintf("%s-%dx%d", recordUsage, at.conns, at.depth)
			}
			cfg := f.Config(f.trunk[m].Addr, load.Kernel, tapesOf(method, f.rows(at), at.conns, f.envelopes[m]), at.depth)
			f.add(cell(m, method, at), f.trunk[m], cfg, profile)
		}
	}
	for _, at := range allSizes {
		for _, p := range f.peers {
			f.add(cell(p.Name, p.method, at), p.Server, f.Config(p.Addr, p.protocol, p.tapes(f.rows(at), at.conns), at.depth), "")
		}
		add(recordUsage, at, always, interval, memory)
		if !slices.Contains(thousand, at) {
			continue
		}
		for _, method := range []string{transitionState, updateEnvelope, checkRateLimit} {
			add(method, at, always, memory)
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

// diskSizes are the bytes of the bare writes, and diskSamples how many of each there are in a
// round.
var diskSizes = []int{4 << 10, 64 << 10}

const diskSamples = 60

// bareWrites appends to a file of its own beside the stores, each write with a sync.
func (f *field) bareWrites() ([]goal.Sample, error) {
	file, err := os.CreateTemp(f.Rig.Dir, "bare-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	for _, size := range diskSizes {
		block := bytes.Repeat([]byte{0xa5}, size)
		for range diskSamples {
			start := time.Now()
			_, err := file.Write(block)
			if err = errors.Join(err, unix.Fdatasync(int(file.Fd()))); err != nil {
				return nil, fmt.Errorf("cannot write and sync %d bytes: %w", size, err)
			}
			f.bare[size] = append(f.bare[size], goal.Micros(time.Since(start)))
		}
	}
	return nil, nil
}

// disk is the table of bare writes, as context for all of it.
func (f *field) disk() goal.Grid {
	g := goal.Grid{Title: "a bare write and fdatasync in the same folder", Head: []string{"bytes", "samples", "p50 µs", "p99 µs"}}
	for _, size := range diskSizes {
		took := f.bare[size]
		g.Add(size, len(took), goal.Quantile(took, 0.5), goal.Quantile(took, 0.99))
	}
	return g
}
