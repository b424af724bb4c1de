package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
)

// side is one server and the load of agents' reports that it can take.
type side struct {
	server *load.Server
	cfg    load.Config
}

// step measures the server under its load.
func (s *side) step(o options) goal.Step {
	return goal.One(s.cell(), func() (goal.Sample, error) { return load.Measure(s.cfg, s.server, o.warmup, o.window) })
}

func (s *side) cell() goal.Cell {
	return goal.Cell{Server: s.server.Name, Method: "report", Conns: len(s.cfg.Tapes), Depth: s.cfg.Depth}
}

// measureReport compares ReportAgentResult → next instruction with the same work of the peer.
func measureReport(rig *load.Rig, o options) ([]asked, error) {
	defer rig.StopAll()
	ours, err := startKernel(rig, o)
	if err != nil {
		return nil, err
	}
	theirs, err := startPeer(rig, o)
	if err != nil {
		return nil, err
	}
	all, err := goal.Rounds(o.rounds, []goal.Step{ours.step(o), theirs.step(o)}, io.Discard)
	if err != nil {
		return nil, err
	}
	fmt.Println()
	printCells(all)
	const against = "at depth %d against net/http and encoding/json"
	return []asked{
		ask(fmt.Sprintf("server CPU of a report "+against, o.depth), 10, goal.Ratios(all, theirs.cell(), ours.cell(), goal.CPU)),
		ask(fmt.Sprintf("reports/s "+against, o.depth), 10, goal.Ratios(all, ours.cell(), theirs.cell(), goal.Rate)),
	}, nil
}

// startKernel starts trunkline with the sessions begun; one connection carries the reports of all
// of them.
func startKernel(rig *load.Rig, o options) (*side, error) {
	s, err := rig.Trunkline("kernel.loops=" + strconv.Itoa(o.loops))
	if err != nil {
		return nil, err
	}
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
		return nil, err
	}
	return &side{s, load.Config{Addr: s.Addr, Protocol: load.Kernel, Tapes: []*load.Tape{tape}, Depth: o.depth, Spin: true}}, nil
}

func addCall(tape *load.Tape, method, body string) error {
	b, err := transcode.EncodeJSON([]byte(body))
	if err != nil {
		return err
	}
	payload := mpack.AppendRequest(nil, "r0000001", "orchestration", method, string(b))
	tape.Add(0, frame.Append(nil, frame.Request, payload, nil))
	return nil
}

// startPeer starts this program as the peer, with the sessions begun; each has a connection of its
// own.
func startPeer(rig *load.Rig, o options) (*side, error) {
	s, err := rig.Peer("net/http", "", "-peer")
	if err != nil {
		return nil, err
	}
	var tapes []*load.Tape
	for i := range o.depth {
		if err := post(s.Addr, beginPath, beginBody(i, o.outputs)); err != nil {
			return nil, err
		}
		tape := new(load.Tape)
		for _, agent := range []string{"a1", "a2"} {
			tape.Add(0, load.AppendPost(nil, reportPath, []byte(reportBody(i, agent, o.reported))))
		}
		tapes = append(tapes, tape)
	}
	return &side{s, load.Config{Addr: s.Addr, Protocol: load.HTTP, Tapes: tapes, Depth: 1, Spin: true}}, nil
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

// printCells prints the medians of every cell.
func printCells(all []goal.Sample) {
	for _, c := range goal.Summarize(all) {
		m := c.Median
		fmt.Printf("%-10s %8.0f/s  server CPU %6.2f µs  p50 %4.0f µs  p99 %5.0f µs\n", c.Server, m.PerSec, m.CPU/1e3, m.P50, m.P99)
	}
}
