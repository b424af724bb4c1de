package main

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"trunkline/bench/internal/load"
)

// conns and depth are the load of every measurement.
const (
	conns = 64
	depth = 64
)

type options struct {
	server string
	rows   int
}

func parseFlags(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("rows", flag.ContinueOnError)
	f.StringVar(&o.server, "server", "", "trunkline binary; empty builds ./cmd/trunkline")
	f.IntVar(&o.rows, "rows", 1_000_000, "the largest table; it grows there by tens")
	return o, f.Parse(args)
}

func main() {
	load.Main("rows", parseFlags, func(o options) (failed bool, err error) { return false, run(o.server, o.rows) })
}

func run(binary string, most int) error {
	rig, err := load.ServerRig("rows-", binary)
	if err != nil {
		return err
	}
	defer rig.Close()
	// As many users as rows would fill the rate limiter, which is not the table: it is kept small.
	s, err := rig.Trunkline("kernel.loops=1", "kernel.max_rate_limit_users=1000", fmt.Sprintf("kernel.max_processes=%d", most))
	if err != nil {
		return err
	}
	b := bench{server: s}
	if b.empty, err = s.Memory(); err != nil {
		return err
	}
	fmt.Println("     rows  create µs  look-up µs  RSS bytes/process")
	for size, have := min(10_000, most), 0; size <= most; size, have = size*10, size {
		if err := b.grow(have, size); err != nil {
			return err
		}
	}
	if err := b.remove(most); err != nil {
		return err
	}
	return b.collector()
}

type bench struct {
	server *load.Server
	empty  load.Memory
}

// cpu returns server CPU microseconds per request of f, which makes n requests.
func (b *bench) cpu(n int, f func() error) (float64, error) {
	before, err := b.server.CPU()
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := b.server.CPU()
	return float64(after-before) / float64(n) / float64(time.Microsecond), err
}

// grow creates the rows from have to size, then looks rows up in an order that no cache foresees.
func (b *bench) grow(have, size int) error {
	create, err := b.cpu(size-have, func() error { return load.CreateRows(b.server.Addr, have, size) })
	if err != nil {
		return err
	}
	tapes, n := pidTapes("GetProcess", rand.New(rand.NewPCG(1, 2)).Perm(size))
	look, err := b.cpu(n, func() error { return load.SendOnce(b.server.Addr, load.Kernel, tapes, depth) })
	if err != nil {
		return err
	}
	m, err := b.server.Memory()
	fmt.Printf("%9d  %9.3f  %10.3f  %17.0f\n", size, create, look, float64(m.RSS-b.empty.RSS)/float64(size))
	return err
}

// remove terminates a tenth of the rows, then creates as many others, each of which evicts one.
func (b *bench) remove(rows int) error {
	tenth := rows / 10
	tapes, n := pidTapes("TerminateProcess", rand.New(rand.NewPCG(3, 4)).Perm(rows)[:tenth])
	terminate, err := b.cpu(n, func() error { return load.SendOnce(b.server.Addr, load.Kernel, tapes, depth) })
	if err != nil {
		return err
	}
	replace, err := b.cpu(n, func() error { return load.CreateRows(b.server.Addr, rows, rows+n) })
	fmt.Printf("in the full table: terminate %.3f µs, create with removal %.3f µs\n", terminate, replace)
	return err
}

// pidTapes deals one request of a method per row to the connections; n is how many there are.
func pidTapes(method string, rows []int) (tapes []*load.Tape, n int) {
	const most = 400_000 // encoded requests held here at a time
	rows = rows[:min(len(rows), most)]
	for range conns {
		tapes = append(tapes, new(load.Tape))
	}
	for i, row := range rows {
		tapes[i%conns].Add(0, load.RowRequest(method, row))
	}
	return tapes, len(rows)
}

// collector prints what the server's metrics say of garbage collection.
func (b *bench) collector() error {
	admin, err := b.server.Admin()
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 10 * time.Second}
	res, err := client.Get("http://" + admin + "/metrics")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	value := map[string]float64{}
	for in := bufio.NewScanner(res.Body); in.Scan(); {
		if name, text, ok := strings.Cut(in.Text(), " "); ok {
			value[name], _ = strconv.ParseFloat(text, 64)
		}
	}
	fmt.Printf("collections %.0f, worst pause %.3f ms\n", value["go_gc_duration_seconds_count"], 1000*value[`go_gc_duration_seconds{quantile="1"}`])
	return nil
}
