package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"trunkline/bench/internal/load"
	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/handlers/ipc/client"
)

// cell is one server under the load of agents' reports.
type cell struct {
	name   string
	server *load.Server
	cfg    load.Config
	all    []sample
}

// sample is what a cell showed in one round.
type sample struct {
	perSec   float64
	cpu      float64 // server CPU nanoseconds per report
	p50, p99 time.Duration
}

// measureReport compares ReportAgentResult → next instruction with the same work of the peer.
func measureReport(o options) ([]goal, error) {
	ours, err := startKernel(o)
	if err != nil {
		return nil, err
	}
	defer ours.server.Stop()
	theirs, err := startPeer(o)
	if err != nil {
		return nil, err
	}
	defer theirs.server.Stop()
	cpu := goal{what: fmt.Sprintf("server CPU of a report at depth %d against net/http and encoding/json", o.depth), must: 10}
	rate := goal{what: fmt.Sprintf("reports/s at depth %d against net/http and encoding/json", o.depth), must: 10}
	for round := range o.rounds {
		pair := []*cell{ours, theirs}
		if round%2 == 1 {
			pair[0], pair[1] = pair[1], pair[0]
		}
		for _, c := range pair {
			if err := c.measure(o); err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
		}
		a, b := ours.all[round], theirs.all[round]
		cpu.ratios, rate.ratios = append(cpu.ratios, b.cpu/a.cpu), append(rate.ratios, a.perSec/b.perSec)
	}
	fmt.Println()
	ours.print()
	theirs.print()
	return []goal{cpu, rate}, nil
}

// startKernel starts trunkline with the sessions begun; one connection carries the reports of all of them.
func startKernel(o options) (*cell, error) {
	s, err := load.StartServer(load.Trunkline(o.server, "kernel.loops="+strconv.Itoa(o.loops)))
	if err != nil {
		return nil, err
	}
	c := &cell{name: "trunkline", server: s}
	begin, tape := new(load.Tape), new(load.Tape)
	for i := range o.depth {
		if err = addCall(begin, "InitializeSession", beginBody(i, o.outputs)); err != nil {
			break
		}
	}
	for _, agent := range []string{"a1", "a2"} {
		for i := range o.depth {
			err = errors.Join(err, addCall(tape, "ReportAgentResult", reportBody(i, agent, o.reported)))
		}
	}
	if err == nil {
		err = load.SendOnce(s.Addr, load.Kernel, []*load.Tape{begin}, 8)
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	c.cfg = load.Config{Addr: s.Addr, Protocol: load.Kernel, Tapes: []*load.Tape{tape}, Depth: o.depth, Spin: true}
	return c, nil
}

func addCall(tape *load.Tape, method, body string) error {
	b, err := client.EncodeJSON([]byte(body))
	if err != nil {
		return err
	}
	payload := mpack.AppendRequest(nil, "r0000001", "orchestration", method, string(b))
	tape.Add(0, frame.Append(nil, frame.Request, payload, nil))
	return nil
}

// startPeer starts this program as the peer, with the sessions begun; each has a connection of its own.
func startPeer(o options) (*cell, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	s, err := load.StartServer(load.Command{Name: "net/http", Path: self, Args: []string{"-peer"}, Listening: load.PeerListening})
	if err != nil {
		return nil, err
	}
	c := &cell{name: "net/http", server: s}
	var tapes []*load.Tape
	for i := range o.depth {
		if err := post(s.Addr, beginPath, beginBody(i, o.outputs)); err != nil {
			s.Stop()
			return nil, err
		}
		tape := new(load.Tape)
		for _, agent := range []string{"a1", "a2"} {
			tape.Add(0, load.AppendPost(nil, reportPath, []byte(reportBody(i, agent, o.reported))))
		}
		tapes = append(tapes, tape)
	}
	c.cfg = load.Config{Addr: s.Addr, Protocol: load.HTTP, Tapes: tapes, Depth: 1, Spin: true}
	return c, nil
}

func post(addr, path, body string) error {
	reply, err := http.Post("http://"+addr+path, "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("cannot post to %s: %s: %s", path, reply.Status, text)
	}
	return err
}

// measure runs the load once: warm-up, window, and the replies that are still out.
func (c *cell) measure(o options) error {
	session, err := load.Start(c.cfg)
	if err != nil {
		return err
	}
	time.Sleep(o.warmup)
	cpu, err := c.server.CPU()
	before, start := session.Replies(), time.Now()
	session.Record(true)
	time.Sleep(o.window)
	n, elapsed := session.Replies()-before, time.Since(start)
	after, cpuErr := c.server.CPU()
	session.Record(false)
	latency, stopErr := session.Stop()
	if err := errors.Join(err, cpuErr, stopErr); err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("no reply in %v", elapsed)
	}
	c.all = append(c.all, sample{
		perSec: float64(n) / elapsed.Seconds(), cpu: float64(after-cpu) / float64(n), p50: latency.Quantile(0.5), p99: latency.Quantile(0.99),
	})
	return nil
}

func (c *cell) print() {
	of := func(pick func(sample) float64) float64 {
		var v []float64
		for _, s := range c.all {
			v = append(v, pick(s))
		}
		return median(v)
	}
	fmt.Printf("%-10s %8.0f/s  server CPU %6.2f µs  p50 %4.0f µs  p99 %5.0f µs\n", c.name, of(func(s sample) float64 { return s.perSec }),
		of(func(s sample) float64 { return s.cpu })/1e3, of(func(s sample) float64 { return float64(s.p50) })/1e3,
		of(func(s sample) float64 { return float64(s.p99) })/1e3)
}
