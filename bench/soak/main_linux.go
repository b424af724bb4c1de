package main

import (
	"flag"
	"fmt"
	"runtime"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

type options struct {
	server, gogc                  string
	conns, depth, loops, workers  int
	subscribers, processes, users int
	duration, interval            time.Duration
	maxGrowth                     float64
}

func parseFlags(args []string) (options, error) {
	var o options
	half := max(1, runtime.NumCPU()/2)
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	f.StringVar(&o.server, "server", "", "trunkline binary; empty builds ./cmd/trunkline")
	f.IntVar(&o.conns, "conns", 1000, "connections")
	f.IntVar(&o.depth, "depth", 64, "requests in flight per connection")
	f.IntVar(&o.loops, "loops", half, "event loops of the server")
	f.IntVar(&o.workers, "workers", half, "goroutines of the load generator")
	f.IntVar(&o.subscribers, "subscribers", 1, "connections that take every published event")
	f.IntVar(&o.processes, "processes", 50_000, "the server's max_processes, small so that eviction runs")
	f.IntVar(&o.users, "users", 20_000, "the server's max_rate_limit_users, small so that eviction runs")
	f.StringVar(&o.gogc, "gogc", "10", "GOGC of the server")
	f.DurationVar(&o.duration, "duration", time.Minute, "how long")
	f.DurationVar(&o.interval, "interval", 5*time.Second, "time between memory readings")
	f.Float64Var(&o.maxGrowth, "max-growth", 0.10, "growth of memory allowed after the first ten seconds, as a part")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.conns < 1 || o.depth < 1 || o.interval <= 0 || o.processes < 2*o.conns*rowsPerConn || f.NArg() > 0 {
		return o, fmt.Errorf("cannot run with these flags: counts are positive, -processes is at least %d per connection", 2*rowsPerConn)
	}
	return o, nil
}

func main() {
	load.Main("soak", parseFlags, func(o options) (failed bool, err error) {
		faults, err := run(o)
		return load.Faults(faults, err), err
	})
}

// run starts the server, soaks it and returns what is wrong.
func run(o options) ([]string, error) {
	if err := load.RaiseFileLimit(uint64(4*o.conns + 1000)); err != nil {
		return nil, err
	}
	rig, err := load.ServerRig("soak-", o.server)
	if err != nil {
		return nil, err
	}
	defer rig.Close()
	rig.GoesWithSignal()
	server, err := rig.Start(command(o, rig.Binary))
	if err != nil {
		return nil, err
	}
	if err := prepare(server.Addr, o.conns); err != nil {
		return nil, err
	}
	var subscribers []*subscriber
	for range o.subscribers {
		s, err := subscribe(server.Addr)
		if err != nil {
			return nil, err
		}
		go s.run()
		defer s.stop()
		subscribers = append(subscribers, s)
	}
	return soak(o, server, subscribers)
}

// command is how the server is started. It allocates so little that at the usual GOGC=100 its heap
// doubles over some ten seconds before it is collected once, and resident memory with it; a small
// GOGC makes resident memory follow what is really held.
func command(o options, path string) load.Command {
	c := load.Trunkline(path, fmt.Sprintf("kernel.loops=%d", o.loops), fmt.Sprintf("kernel.max_connections=%d", o.conns+o.subscribers+100),
		fmt.Sprintf("kernel.max_processes=%d", o.processes), fmt.Sprintf("kernel.max_rate_limit_users=%d", o.users))
	c.Env = []string{"GOGC=" + o.gogc}
	return c
}

// soak runs the load against the prepared server.
func soak(o options, server *load.Server, subscribers []*subscriber) ([]string, error) {
	var tapes []*load.Tape
	for conn := range o.conns {
		tapes = append(tapes, mix(conn))
	}
	before, err := server.Memory()
	if err != nil {
		return nil, err
	}
	fmt.Printf("before: RSS %.1f MiB; %d connections × %d in flight for %v\n", goal.MiB(before.RSS), o.conns, o.depth, o.duration)
	out := outcome{refused: &refusals{}, maxGrowth: o.maxGrowth}
	cpu, err := server.CPU()
	if err != nil {
		return nil, err
	}
	session, err := load.Start(load.Config{Addr: server.Addr, Tapes: tapes, Depth: o.depth, Workers: o.workers, Refused: out.refused.evaluate})
	if err != nil {
		return nil, err
	}
	session.Record(true)
	out.readings = watch(o, server, session)
	latency, loadErr := session.Stop()
	out.requests, out.dropped, out.loadErr = session.Replies(), session.Dropped(), loadErr
	after, memErr := server.Memory()
	end, cpuErr := server.CPU()
	if memErr != nil || cpuErr != nil {
		return append(out.faults(), "the server ended; its output:\n"+server.Output()), nil
	}
	fmt.Printf("after: RSS %.1f MiB, peak %.1f MiB\n", goal.MiB(after.RSS), goal.MiB(after.Peak))
	fmt.Printf("%d replies, %.3f µs of server CPU each; p50 %v, p99 %v, p99.9 %v\n", out.requests, float64(end-cpu)/1e3/float64(max(out.requests, 1)),
		latency.Quantile(0.5), latency.Quantile(0.99), latency.Quantile(0.999))
	fmt.Printf("%d error replies, %d dropped or missing, %d × nothing runnable\n", out.refused.errors.Load(), out.dropped, out.refused.nothingRunnable.Load())
	for _, s := range subscribers {
		fmt.Printf("subscriber: %d events, %d gaps\n", s.events.Load(), s.gaps.Load())
	}
	if _, ok := growth(out.readings); !ok {
		fmt.Printf("memory growth not evaluated: fewer than two readings after %v\n", settleTime)
	}
	return out.faults(), nil
}

// watch reads the server's memory until the time is up or every connection has failed.
func watch(o options, server *load.Server, session *load.Session) (readings []reading) {
	start, last := time.Now(), session.Replies()
	tick := time.NewTicker(o.interval)
	defer tick.Stop()
	end := time.After(o.duration)
	for {
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
		fmt.Printf("%6.0f s: RSS %.1f MiB, %.0f requests/s\n", at.Seconds(), goal.MiB(m.RSS), float64(replies-last)/o.interval.Seconds())
		last = replies
	}
}
