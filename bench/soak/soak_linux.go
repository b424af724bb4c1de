// Package soak keeps 1000 connections × 64 pipelined requests on a server, over a mix of the hot
// methods that also creates and ends processes all the time, and fails when anything is refused,
// dropped, or grows.
//
//	go run ./bench soak                 one minute
//	go run ./bench soak -duration 1h
//
// The server runs with small limits for processes and rate-limit users, so that the bounded tables
// fill and evict within the first seconds; what grows after that grows for ever. An error reply, a
// dropped or missing reply, and resident memory that grows by more than a tenth after the first ten
// seconds are faults.
package soak

import (
	"errors"
	"flag"
	"fmt"
	"sync/atomic"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

const (
	// quickTime is how long -quick lasts: two readings after settleTime.
	quickTime = 20 * time.Second
	// between is the time between two readings of memory.
	between = 5 * time.Second
	// settleTime is how long tables and pools may fill before growth counts.
	settleTime = 10 * time.Second
	// maxGrowth is how much resident memory may grow after settleTime, as a part of what it was.
	maxGrowth = 0.10
	// gogc is the server's GOGC. It allocates so little that at the usual 100 its heap doubles over
	// some ten seconds before it is collected once, and resident memory with it; a small one makes
	// resident memory follow what is really held.
	gogc = "10"
	// processes and users are the server's limits, small so that eviction runs. The processes that
	// the connections keep have to fit twice.
	processes, users = 50_000, 20_000
	maxConns         = processes / (2 * rowsPerConn)
)

// Part keeps up a mixed load and looks for what goes wrong or grows.
func Part() part.Part {
	lasting := time.Minute
	return part.Part{
		Name: "soak", What: "a mixed load at full speed: is anything refused or dropped, does memory grow?",
		Defaults: func(o *part.Options) { o.Conns = 1000 },
		Flags:    func(f *flag.FlagSet) { f.DurationVar(&lasting, "duration", lasting, "soak: how long") },
		Run: func(r *part.Run) error {
			if r.Conns > maxConns {
				return fmt.Errorf("cannot keep %d connections: at most %d", r.Conns, maxConns)
			}
			if r.Quick {
				lasting = min(lasting, quickTime)
			}
			return run(r, lasting)
		},
	}
}

// run starts the server and a subscriber, and soaks the server.
func run(r *part.Run, lasting time.Duration) error {
	c := load.Trunkline(r.Binary, fmt.Sprintf("kernel.loops=%d", r.Loops), fmt.Sprintf("kernel.max_connections=%d", r.Conns+100),
		fmt.Sprintf("kernel.max_processes=%d", processes), fmt.Sprintf("kernel.max_rate_limit_users=%d", users))
	c.Env = []string{"GOGC=" + gogc}
	server, err := r.Start(c)
	if err != nil {
		return err
	}
	if err := load.CreateRows(server.Addr, 0, r.Conns*rowsPerConn); err != nil {
		return err
	}
	reader, err := load.Subscribe(server.Addr, eventType, 1)
	if err != nil {
		return err
	}
	tapes := make([]*load.Tape, r.Conns)
	for conn := range tapes {
		tapes[conn] = mix(conn)
	}
	window, err := load.OpenWindow(server.PID(), 0)
	if err != nil {
		return err
	}
	var refused refusals
	session, err := load.Start(load.Config{Addr: server.Addr, Tapes: tapes, Depth: r.Depth, Workers: r.Workers, Refused: refused.count})
	if err != nil {
		return err
	}
	session.Record(true)
	memory := goal.Grid{Title: "memory during the load", Head: []string{"s", "RSS MiB", "requests/s"}}
	readings := watch(server, session, lasting, &memory)
	latency, loadErr := session.Stop()
	sample, windowErr := window.Close(session.Replies())
	if windowErr != nil {
		return fmt.Errorf("%w; the server's output:\n%s", errors.Join(loadErr, windowErr), server.Output())
	}
	sample.Cell = goal.Cell{Server: "trunkline", Method: "mix", Conns: r.Conns, Depth: r.Depth}
	sample.Quantiles(latency.Quantile)
	r.Report.Samples = append(r.Report.Samples, sample)
	r.Report.Table(memory)
	r.Report.Settings.Rounds, r.Report.Settings.Window = 1, lasting.Seconds()
	r.Report.Note("%d replies, %d of them errors, %d that nothing is runnable; %d dropped or missing", sample.Requests, refused.errors.Load(),
		refused.nothingRunnable.Load(), session.Dropped())
	evaluate(r.Report, &refused, session.Dropped(), loadErr, readings)
	metrics, err := server.Metrics()
	if err != nil {
		return err
	}
	r.Report.Note("A subscriber took %d events; the server dropped %.0f that it was too slow for.", reader.Chunks(), metrics["trunkline_bus_events_dropped_total"])
	if reader.Dropped() > 0 {
		r.Report.Fault("the subscriber lost its stream")
	}
	server.Stop()        // only that ends a stream
	_, _ = reader.Stop() // it complains that the request was never answered, which no stream's is
	return nil
}

// watch reads the server's memory until the time is up or every connection has failed.
func watch(server *load.Server, session *load.Session, lasting time.Duration, table *goal.Grid) (readings []reading) {
	start, last := time.Now(), session.Replies()
	tick := time.NewTicker(between)
	defer tick.Stop()
	for end := time.After(lasting); ; {
		select {
		case <-session.Done():
			return readings
		case <-end:
			return readings
		case <-tick.C:
		}
		m, err := server.Memory()
		if err != nil {
			return readings
		}
		at, replies := time.Since(start), session.Replies()
		readings = append(readings, reading{at, m.RSS})
		table.Add(at.Seconds(), goal.MiB(m.RSS), float64(replies-last)/between.Seconds())
		last = replies
	}
}

// nothingRunnable is what GetNextRunnable is refused with on an empty queue (kernel-ipc §4.4).
const nothingRunnable = "No runnable processes"

// rowsPerConn is how many processes of its own a connection cycles through.
const rowsPerConn = 4

// eventType is what the Publish requests publish and the subscriber listens to, and eventText the
// bytes of text in each.
const (
	eventType = "soak.tick"
	eventText = 26
)

// mix encodes the endless mix of one connection. The first half of the rows' life is RUNNING, the
// second READY, so every transition is legal however often the tape repeats; the fresh process is
// created and ended within a few requests. It has a user of its own, because a user may create ten
// in ten seconds, and the tape's counter in its identifier.
func mix(conn int) *load.Tape {
	tape := new(load.Tape)
	fresh := fmt.Sprintf("50b%05x-0000-4000-8000-%s", conn, load.Placeholder)
	for _, state := range []string{"RUNNING", "READY"} {
		for row := conn * rowsPerConn; row < (conn+1)*rowsPerConn; row++ {
			tape.Add(load.RowRequest("GetProcess", row))
			tape.Add(load.RowRequest("TransitionState", row, "new_state", state))
			tape.Add(load.RowRequest("RecordUsage", row))
			tape.AddFresh(load.CreateRequest(fresh))
			tape.Add(load.RowRequest("CheckQuota", row))
			tape.Add(load.NewRequest("kernel", "CheckRateLimit", "user_id", fmt.Sprintf("user-%d", conn)))
			tape.Add(load.NewRequest("kernel", "GetNextRunnable"))
			tape.Add(load.Publish(eventType, eventText, "soak"))
			tape.Add(load.NewRequest("kernel", "TerminateProcess", "pid", fresh, "reason", "done"))
		}
	}
	return tape
}

// refusals counts ERROR frames. The workers of a load call it concurrently.
type refusals struct {
	nothingRunnable atomic.Uint64 // a normal answer of GetNextRunnable
	errors          atomic.Uint64
	first           atomic.Pointer[load.Failure]
}

// count never ends a connection: a soak counts everything that goes wrong.
func (r *refusals) count(f *load.Failure) error {
	if f.Code == "NOT_FOUND" && f.Message == nothingRunnable {
		r.nothingRunnable.Add(1)
		return nil
	}
	r.errors.Add(1)
	r.first.CompareAndSwap(nil, f)
	return nil
}

// reading is the server's memory at one moment of the load.
type reading struct {
	at  time.Duration
	rss int64
}

// growth returns by which part of its value at settleTime the memory grew at most; ok is false if
// the load was too short.
func growth(readings []reading) (part float64, ok bool) {
	var base, highest int64
	for _, r := range readings {
		switch {
		case r.at < settleTime:
		case base == 0:
			base, highest = r.rss, r.rss
		default:
			highest, ok = max(highest, r.rss), true
		}
	}
	if !ok || base == 0 {
		return 0, false
	}
	return float64(highest-base) / float64(base), true
}

// evaluate adds what is wrong to the report; nothing means that the soak passed.
func evaluate(r *part.Report, refused *refusals, dropped uint64, loadErr error, readings []reading) {
	r.Checked = true
	if n := refused.errors.Load(); n > 0 {
		r.Fault("%d error replies, first: %v", n, refused.first.Load())
	}
	if dropped > 0 {
		r.Fault("%d requests without a reply", dropped)
	}
	if loadErr != nil {
		r.Fault("the load failed: %v", loadErr)
	}
	if part, ok := growth(readings); !ok {
		r.Note("Growth of memory is not evaluated: fewer than two readings after %v.", settleTime)
	} else if part > maxGrowth {
		r.Fault("memory grew by %.1f %% after the first %v, more than %.1f %%", 100*part, settleTime, 100*maxGrowth)
	}
}
