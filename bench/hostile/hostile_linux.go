// Package hostile attacks a server, one scene after the other, while well-behaved clients go on
// working, and evaluates what those clients and the server's memory felt.
//
//	go run ./bench hostile
//	go run ./bench hostile -only never-reads
//
// The reference load is 64 connections that together ask for GetProcess at a fixed rate, each with
// one request in flight; a latency counts from the time the request was due, so that a stall of the
// server is not hidden by the requests that it kept from being sent. It is measured alone and then
// during each scene. A scene passes when no reference request fails, its p99 stays under the larger
// of 25 ms, what one hostile frame may hold an event loop, and ten times the p99 without attack,
// the server's memory stays within 64 MiB of what it was, and the attacked connections behaved as
// the protocol asks. A scene whose only fault is latency is played up to three times.
package hostile

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

const (
	// maxP99 is the reference p99 that is always allowed during a scene, and maxRise how often the
	// one without attack is.
	maxP99  = 25 * time.Millisecond
	maxRise = 10
	// maxMemory is how many bytes a scene may add to the server's memory.
	maxMemory = 64 << 20
	// rate is the reference load's, in requests per second over all connections.
	rate = 3200
	// settle is how long the server has after a scene before its memory is read.
	settle = 2 * time.Second
	// between is the time between two readings of memory during a scene: the peak that the system
	// keeps is of the whole life of a process and would carry one scene's into the next.
	between = 20 * time.Millisecond
	// tries is how often a scene is played whose only fault is latency: other work on the machine
	// can stall any process, but not the same scene every time.
	tries = 3
)

// Part plays attacks beside a reference load.
func Part() part.Part {
	return part.Part{
		Name: "hostile", What: "bad frames, slow readers and floods: what do good clients and the memory feel?",
		Defaults: func(o *part.Options) { o.Rounds, o.Window = 1, 5*time.Second },
		Quick:    func(o *part.Options) { o.Rounds, o.Window = 1, time.Second },
		Files:    func(*part.Options) uint64 { return 8000 },
		Run:      run,
	}
}

// run starts the server and plays the scenes, each for a window.
func run(r *part.Run) error {
	server, err := r.Trunkline(fmt.Sprintf("kernel.loops=%d", r.Loops), "kernel.max_connections=2000")
	if err != nil {
		return err
	}
	if err := load.CreateRows(server.Addr, 0, r.Conns); err != nil {
		return err
	}
	r.Report.Checked = true
	memory := goal.Grid{Title: "memory, MiB", Head: []string{"scene", "before", "peak", "after", "what happened"}}
	for _, s := range scenes() {
		if !r.Asked(s.name) {
			continue
		}
		var o outcome
		for try := 1; try == 1 || try <= tries && o.late(); try++ {
			o = play(server, s, r.Conns, r.Window)
			memory.Add(s.name, goal.MiB(o.before), goal.MiB(o.peak), goal.MiB(o.after), o.note)
			r.Report.Samples = append(r.Report.Samples, sample(s.name+", before", r.Conns, o.alone), sample(s.name, r.Conns, o.during))
		}
		for _, fault := range o.faults() {
			r.Report.Fault("%s: %s", s.name, fault)
		}
		if !server.Alive() {
			return fmt.Errorf("the server did not survive scene %s; its output:\n%s", s.name, server.Output())
		}
	}
	r.Report.Table(memory)
	return nil
}

// sample is the reference load in a scene; h is nil for one that failed.
func sample(scene string, conns int, h *load.Histogram) goal.Sample {
	s := goal.Sample{Cell: goal.Cell{Server: "trunkline", Method: scene, Conns: conns, Depth: 1}}
	if h != nil {
		s.Requests = h.Total()
		s.Quantiles(h.Quantile)
	}
	return s
}

// outcome is everything a scene is evaluated by. Latencies are nil where the reference load failed.
type outcome struct {
	note                string
	alone, during       *load.Histogram
	before, peak, after int64 // resident memory in bytes
	err                 error
}

// play measures the reference load alone, then during the scene.
func play(server *load.Server, s scene, conns int, lasting time.Duration) (o outcome) {
	if o.alone, o.err = reference(server.Addr, conns, lasting); o.err != nil {
		return o
	}
	o.before = rss(server)
	var attacked, referred error
	var both sync.WaitGroup
	both.Go(func() { o.note, attacked = s.attack(server.Addr, lasting) })
	both.Go(func() { o.during, referred = reference(server.Addr, conns, lasting) })
	ended := make(chan struct{})
	go func() {
		both.Wait()
		close(ended)
	}()
	tick := time.NewTicker(between)
	defer tick.Stop()
	for over := false; !over; {
		o.peak = max(o.peak, rss(server))
		select {
		case <-ended:
			over = true
		case <-tick.C:
		}
	}
	o.err = errors.Join(attacked, referred)
	time.Sleep(settle)
	o.after = rss(server)
	return o
}

// rss returns 0 for a server that has ended, which run reports by itself.
func rss(server *load.Server) int64 {
	m, _ := server.Memory()
	return m.RSS
}

// faults lists what is wrong; without any the scene passed.
func (o *outcome) faults() (list []string) {
	if o.err != nil {
		list = append(list, strings.ReplaceAll(o.err.Error(), "\n", "; "))
	}
	if o.during == nil || o.during.Total() == 0 {
		return append(list, "no reference request was answered")
	}
	if grown := o.peak - o.before; grown > maxMemory {
		list = append(list, fmt.Sprintf("memory grew by %.1f MiB, more than %.1f", goal.MiB(grown), goal.MiB(maxMemory)))
	}
	if p99, bound := o.during.Quantile(0.99), max(maxP99, maxRise*o.alone.Quantile(0.99)); p99 > bound {
		list = append(list, fmt.Sprintf("%s%v is above %v", lateFault, p99, bound))
	}
	return list
}

// lateFault begins the one fault that a busy machine excuses.
const lateFault = "reference p99 "

// late reports that the only fault is latency.
func (o *outcome) late() bool {
	list := o.faults()
	return len(list) == 1 && strings.HasPrefix(list[0], lateFault)
}

// reference is the well-behaved load for a while: its latencies.
func reference(addr string, conns int, lasting time.Duration) (*load.Histogram, error) {
	h, err := load.RunToEnd(load.Config{Addr: addr, Tapes: load.RowTapes("GetProcess", 0, conns, conns), Depth: 1, PerSec: rate, For: lasting})
	if err != nil {
		return nil, fmt.Errorf("the reference load failed: %w", err)
	}
	return h, nil
}
