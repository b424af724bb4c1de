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
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	for _, s := range scenes {
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
	h, err := load.RunToEnd(load.Config{
		Addr: addr, Tapes: load.RowTapes("GetProcess", 0, conns, conns), Depth: 1, PerSec: rate, For: lasting,
	})
	if err != nil {
		return nil, fmt.Errorf("the reference load failed: %w", err)
	}
	return h, nil
}

// scene is one attack. It runs for about the given time, leaves no connection behind, and returns a
// note for the report; an error means that the server did not answer the attack as the protocol
// asks.
type scene struct {
	name   string
	attack func(addr string, lasting time.Duration) (note string, err error)
}

// scenes are all of them, in the order of the play.
var scenes = []scene{{"half-open", halfOpen}, {"never-reads", neverReads}, {"deaf-subscriber", deafSubscriber(100_000)},
	{"bursts", bursts}, {"deep-nesting", deepNesting}}

func getRequest() []byte { return load.RowRequest("GetProcess", 0) }

// halfOpen announces 5 MiB on each of 1000 connections and sends five bytes of it: the server must
// take memory as bytes arrive, never as announced (kernel-ipc §2.2).
func halfOpen(addr string, lasting time.Duration) (string, error) {
	const conns = 1000
	for i := range conns {
		c, err := load.Dial(addr)
		if err != nil {
			return "", fmt.Errorf("cannot open connection %d: %w", i, err)
		}
		defer c.Close()
		if _, err := c.Write([]byte{0x00, 0x50, 0x00, 0x00, load.Request, 0x84, 0xa2, 'i', 'd'}); err != nil {
			return "", fmt.Errorf("cannot send a part of a frame: %w", err)
		}
	}
	time.Sleep(lasting)
	return fmt.Sprintf("%d connections", conns), nil
}

// neverReads sends requests without end and takes no reply: the server must stop reading
// (kernel-ipc §2.5) or close, so the client's writes must block or fail long before the limit.
func neverReads(addr string, lasting time.Duration) (string, error) {
	const limit = 1_000_000
	c, err := load.Dial(addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	const perWrite = 1000
	batch := bytes.Repeat(getRequest(), perWrite)
	start, sent := time.Now(), 0
	for sent < limit {
		if err := c.SetWriteDeadline(time.Now().Add(lasting)); err != nil {
			return "", err
		}
		if _, err := c.Write(batch); err != nil {
			note := fmt.Sprintf("about %d requests taken, then pushed back", sent)
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				note = fmt.Sprintf("about %d requests taken, closed after %v", sent, time.Since(start).Round(time.Second))
			}
			return note, nil
		}
		sent += perWrite
	}
	return "", fmt.Errorf("%d requests were taken from a client that never reads", sent)
}

// deafSubscriber never reads its stream while many events are published: the events beyond the
// stream's buffer are dropped for it alone (kernel-ipc §4.18), every Publish is answered.
func deafSubscriber(events int) func(addr string, lasting time.Duration) (string, error) {
	const turns = 8
	return func(addr string, lasting time.Duration) (string, error) {
		c, err := load.Dial(addr)
		if err != nil {
			return "", err
		}
		defer c.Close()
		subscribe := load.NewRequest("commbus", "Subscribe", "event_types", []string{"hostile.event"}, "ack", true)
		if err := exchange(c, subscribe, 1, due(load.Chunk)); err != nil {
			return "", fmt.Errorf("cannot subscribe: %w", err)
		}
		publish := load.Publish("hostile.event", 500, "hostile")
		tape := load.TapeOf(slices.Repeat([][]byte{publish}, events/turns)...)
		start := time.Now()
		for range turns {
			if err := load.SendOnce(addr, load.Kernel, []*load.Tape{tape}, 64); err != nil {
				return "", fmt.Errorf("cannot publish: %w", err)
			}
		}
		took := time.Since(start)
		time.Sleep(lasting - took)
		return fmt.Sprintf("%d events of 500 bytes in %v", events, took.Round(time.Millisecond)), nil
	}
}

// bursts writes 4 × 256 requests at once on each of 16 connections, again and again: one connection
// must not hold an event loop (kernel-ipc §2.5).
func bursts(addr string, lasting time.Duration) (string, error) {
	const frames = 4 * 256
	burst := bytes.Repeat(getRequest(), frames)
	total, err := flood(addr, 16, lasting, func(int) ([]byte, int) { return burst, frames }, due(load.Response))
	return fmt.Sprintf("%d requests in bursts of %d", total, frames), err
}

// deepNesting sends payloads of 513 levels, and frames of the largest size that nest to their end:
// each must be refused (kernel-ipc §3.3) and the connection must stay usable.
func deepNesting(addr string, lasting time.Duration) (string, error) {
	const perWrite = 64
	largest, deep := nested(maxPayload-100), bytes.Repeat(nested(513), perWrite)
	total, err := flood(addr, 17, lasting, func(conn int) ([]byte, int) {
		if conn == 0 {
			return largest, 1
		}
		return deep, perWrite
	}, refused)
	return fmt.Sprintf("%d payloads refused", total), err
}

// maxPayload is the largest payload of a frame (kernel-ipc §2.1).
const maxPayload = 5<<20 - 1

// nested returns a request whose payload nests levels deep, the request's map being level one and
// its body level two.
func nested(levels int) []byte {
	inner := bytes.Repeat([]byte{0x91}, levels-3)
	return load.NewRequest("kernel", "GetProcess", "pid", load.Raw(append(inner, 0x90)))
}

// check evaluates a frame that came.
type check func(typ byte, payload []byte) error

// due takes frames of one type.
func due(want byte) check {
	return func(typ byte, payload []byte) error {
		if typ != want {
			return fmt.Errorf("cannot take frame 0x%02X %q where 0x%02X is due", typ, payload[:min(len(payload),
				200)], want)
		}
		return nil
	}
}

// refused takes ERROR frames about the MessagePack.
func refused(typ byte, payload []byte) error {
	if typ != load.Error || !bytes.Contains(payload, []byte("Invalid msgpack: ")) {
		return fmt.Errorf("cannot take frame 0x%02X %q: a payload nested too deep must be refused", typ, payload[:min(len(payload), 200)])
	}
	return nil
}

// exchange writes n requests at once and takes as many replies.
func exchange(c *load.Client, requests []byte, n int, take check) error {
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	if _, err := c.Write(requests); err != nil {
		return fmt.Errorf("cannot write %d requests: %w", n, err)
	}
	for range n {
		typ, payload, err := c.Next()
		if err == nil {
			err = take(typ, payload)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// flood exchanges what batch returns on each of some connections, again and again, which have to be
// usable afterwards. It returns how many requests were answered.
func flood(addr string, conns int, lasting time.Duration, batch func(conn int) (requests []byte, n int), take check) (uint64, error) {
	var total atomic.Uint64
	errs := make([]error, conns)
	work := func(conn int) error {
		c, err := load.Dial(addr)
		if err != nil {
			return err
		}
		defer c.Close()
		requests, n := batch(conn)
		for end := time.Now().Add(lasting); time.Now().Before(end); total.Add(uint64(n)) {
			if err := exchange(c, requests, n, take); err != nil {
				return err
			}
		}
		if err := exchange(c, getRequest(), 1, due(load.Response)); err != nil {
			return fmt.Errorf("cannot use the connection afterwards: %w", err)
		}
		return nil
	}
	var wg sync.WaitGroup
	for i := range conns {
		wg.Go(func() { errs[i] = work(i) })
	}
	wg.Wait()
	return total.Load(), errors.Join(errs...)
}
