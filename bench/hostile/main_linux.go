package main

import (
	"flag"
	"fmt"
	"runtime"
	"time"

	"trunkline/bench/internal/load"
)

type options struct {
	server, scene      string
	loops, conns, rate int
	tries              int
	lasting, settle    time.Duration
	limits             limits
}

func parseFlags(args []string) (options, error) {
	var o options
	var memoryMiB int64
	f := flag.NewFlagSet("hostile", flag.ContinueOnError)
	f.StringVar(&o.server, "server", "", "trunkline binary; empty builds ./cmd/trunkline")
	f.StringVar(&o.scene, "scene", "", "only this scene")
	f.IntVar(&o.loops, "loops", max(1, runtime.NumCPU()/2), "event loops of the server")
	f.IntVar(&o.conns, "conns", 64, "connections of the reference load")
	f.IntVar(&o.rate, "rate", 3200, "reference requests per second, all connections together")
	f.IntVar(&o.tries, "tries", 3, "how often a scene is played whose only fault is latency")
	f.DurationVar(&o.lasting, "lasting", 5*time.Second, "how long each scene and each quiet measurement lasts")
	f.DurationVar(&o.settle, "settle", 2*time.Second, "wait after a scene before the memory is read")
	f.DurationVar(&o.limits.p99, "p99", 25*time.Millisecond, "reference p99 that is always allowed during a scene")
	f.Int64Var(&memoryMiB, "memory", 64, "MiB that a scene may add to the server's memory")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.limits.memory = memoryMiB << 20
	if o.conns < 1 || o.rate < 1 || o.lasting <= 0 || f.NArg() > 0 {
		return o, fmt.Errorf("cannot run with these flags: counts and times are positive")
	}
	for _, s := range scenes {
		if o.scene == "" || o.scene == s.name {
			return o, nil
		}
	}
	return o, fmt.Errorf("cannot play scene %q: there is none of that name", o.scene)
}

func main() {
	load.Main("hostile", parseFlags, func(o options) (failed bool, err error) {
		n, err := run(o)
		switch {
		case err != nil:
		case n > 0:
			fmt.Printf("FAIL %d scenes\n", n)
		default:
			fmt.Println("PASS")
		}
		return n > 0, err
	})
}

// run starts the server and plays the scenes.
func run(o options) (failed int, err error) {
	if err := load.RaiseFileLimit(8000); err != nil {
		return 0, err
	}
	rig, err := load.ServerRig("hostile-", o.server)
	if err != nil {
		return 0, err
	}
	defer rig.Close()
	rig.GoesWithSignal()
	server, err := rig.Trunkline(fmt.Sprintf("kernel.loops=%d", o.loops), "kernel.max_connections=2000")
	if err != nil {
		return 0, err
	}
	if err := createProcesses(server.Addr, o.conns); err != nil {
		return 0, err
	}
	for _, s := range scenes {
		if o.scene != "" && o.scene != s.name {
			continue
		}
		if !playUntilOnTime(o, server, s) {
			failed++
		}
		if !server.Alive() {
			return failed, fmt.Errorf("the server did not survive scene %s; its output:\n%s", s.name, server.Output())
		}
	}
	return failed, nil
}

// playUntilOnTime plays a scene and reports whether it passed. A scene whose only fault is latency
// is played again: other work on the machine can stall any process, but not the same scene every
// time.
func playUntilOnTime(o options, server *load.Server, s scene) bool {
	for try := 1; ; try++ {
		r := play(o, server, s)
		fmt.Print(r.text(o.limits))
		faults := r.faults(o.limits)
		if len(faults) == 0 {
			return true
		}
		if len(r.firm(o.limits)) > 0 || try >= o.tries {
			return false
		}
	}
}

// play measures the reference load alone, then during the scene.
func play(o options, server *load.Server, s scene) result {
	ref := reference{addr: server.Addr, conns: o.conns, rate: o.rate}
	r := result{scene: s.name}
	if r.alone, r.err = ref.during(o.lasting, func() error { return nil }); r.err != nil {
		return r
	}
	r.memory.before = rss(server)
	watch := watchPeak(server)
	r.during, r.err = ref.during(o.lasting, func() (err error) {
		r.note, err = s.attack(server.Addr, o.lasting)
		return err
	})
	r.memory.peak = watch.end()
	time.Sleep(o.settle)
	r.memory.after = rss(server)
	return r
}

// rss returns 0 for a server that has ended, which run reports by itself.
func rss(server *load.Server) int64 {
	m, err := server.Memory()
	if err != nil {
		return 0
	}
	return m.RSS
}
