package protocols

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// Server names as they stand in the table.
const (
	trunkline = "trunkline"
	baregnet  = "baregnet"
	netconn   = "netconn"
	redcon    = "redcon"
	redis     = "redis"
	nats      = "nats"
	grpcgo    = "grpc-go"
	given     = "peer" // the server at -peer
)

// What servers are asked.
const (
	evaluated       = "GetProcess" // the method of the grid: every kernel server is asked it at every size
	transitionState = "TransitionState"
	paced           = evaluated + " paced" // at a rate of its own
	get             = "GET"
	unary           = "unary"
	requestReply    = "request-reply"
)

// The hot methods measured, in the order of the table.
var methods = []string{evaluated, "RecordUsage", "CheckQuota", transitionState}

// natsSubject is what the program natsreply answers.
const natsSubject = "bench.get"

// entrant is a server that is measured in all of the grid, and what it is asked there.
type entrant struct {
	name, method string
	step         func(conns, depth int) goal.Step
}

// enter starts all servers. The entrants come in the order of the table.
func (f *field) enter() error {
	if err := f.build(); err != nil {
		return err
	}
	for _, start := range []func() error{
		f.enterTrunkline,
		f.enterGRPC,
		func() error {
			return f.peer(nats, "natsreply", func(s *load.Server) { f.add(s, requestReply, load.NATS, natsTapes) }, "-reply", f.replySize())
		},
		f.enterGet,
		func() error { return f.peer(netconn, netconn, f.addKernel, "-reply", f.replySize()) },
		f.enterBare, f.enterPeer,
	} {
		if err := start(); err != nil {
			return err
		}
	}
	f.entrants = append(f.entrants[1:], f.entrants[0])
	return nil
}

// add adds a server whose requests for a number of connections tapes makes.
func (f *field) add(s *load.Server, method string, p load.Protocol, tapes func(conns int) []*load.Tape) {
	f.entrants = append(f.entrants, entrant{s.Name, method, func(conns, depth int) goal.Step {
		return f.Step(goal.Cell{Server: s.Name, Method: method}, s, f.config(s.Addr, p, tapes(conns), depth))
	}})
}

// addKernel adds a server that speaks the kernel protocol.
func (f *field) addKernel(s *load.Server) {
	f.entrants = append(f.entrants, entrant{s.Name, evaluated, func(conns, depth int) goal.Step { return f.kernelStep(s, s.Name, evaluated, conns, depth) }})
}

// peer starts a program of bench/peers and adds it.
func (f *field) peer(name, program string, add func(*load.Server), args ...string) error {
	s, err := f.Rig.Peer(name, filepath.Join(f.bin, program), args...)
	if err == nil {
		add(s)
	}
	return err
}

func (f *field) replySize() string { return strconv.Itoa(f.replies[evaluated]) }

func (f *field) enterTrunkline() (err error) {
	f.trunk, err = f.Trunkline("kernel.loops="+strconv.Itoa(f.Loops), fmt.Sprintf("kernel.max_connections=%d", 2*f.Many),
		fmt.Sprintf("kernel.max_processes=%d", max(1_000_000, 2*f.Rows)), "admin.pprof="+strconv.FormatBool(f.Profile != ""))
	if err != nil {
		return err
	}
	f.addKernel(f.trunk)
	if err := load.CreateRows(f.trunk.Addr, 0, f.Rows); err != nil {
		return err
	}
	f.replies, err = probeReplies(f.trunk.Addr)
	return err
}

// enterGet starts the servers that speak RESP, and stores their rows.
func (f *field) enterGet() error {
	var list []*load.Server
	if err := f.peer(redcon, "redconget", func(s *load.Server) { list = append(list, s) }); err != nil {
		return err
	}
	s, err := f.StartRedis(redis, "--save", "", "--appendonly", "no")
	if err != nil {
		return err
	}
	if s != nil {
		list = append(list, s)
	}
	for _, s := range list {
		f.add(s, get, load.RESP, func(conns int) []*load.Tape { return redisTapes(f.Rows, conns) })
		if err := storeRows(s.Addr, f.Rows); err != nil {
			return err
		}
	}
	return nil
}

// enterBare starts one baregnet per reply size, so that each method is compared with a constant
// reply as long as its own.
func (f *field) enterBare() error {
	for _, size := range f.replies {
		if f.bare[size] != nil {
			continue
		}
		add := func(s *load.Server) { f.bare[size] = s }
		if err := f.peer(baregnet, baregnet, add, "-reply", strconv.Itoa(size), "-loops", strconv.Itoa(f.Loops)); err != nil {
			return err
		}
	}
	f.addKernel(f.bare[f.replies[evaluated]])
	return nil
}

// enterPeer adds the kernel server at -peer, which another program started. Where it refuses a
// size, that is its own affair and no reason to end the run: there is no sample, and it is
// reported.
func (f *field) enterPeer() error {
	if f.Options.Peer == "" {
		return nil
	}
	at, err := net.ResolveTCPAddr("tcp4", f.Options.Peer)
	if err != nil {
		return fmt.Errorf("cannot use the peer %q: %w", f.Options.Peer, err)
	}
	addr := at.String()
	if err := fill(addr, f.Rows); err != nil {
		return err
	}
	f.Report.Note("One more server was given: %s.", f.Options.Peer)
	pid := load.ListenerPID(addr)
	f.entrants = append(f.entrants, entrant{given, evaluated, func(conns, depth int) goal.Step { return f.givenStep(addr, pid, conns, depth) }})
	return nil
}

func (f *field) givenStep(addr string, pid, conns, depth int) goal.Step {
	cfg, c := f.config(addr, load.Kernel, load.RowTapes(evaluated, 0, f.Rows, conns), depth), cell(given, evaluated, conns, depth)
	return goal.Step{Name: c.String(), Measure: func() ([]goal.Sample, error) {
		s, err := load.MeasureProcess(cfg, pid, f.Warmup, f.Window)
		if err != nil {
			f.Report.Note("Not measured: %s: %v", c, err)
			return nil, nil
		}
		s.Cell = c
		return []goal.Sample{s}, nil
	}}
}

// fill creates the rows, unless the last one is there from a run before.
func fill(addr string, rows int) error {
	_, err := load.Ask(addr, "kernel", evaluated, "pid", load.PID(rows-1))
	if refused := (*load.Failure)(nil); errors.As(err, &refused) {
		return load.CreateRows(addr, 0, rows)
	}
	if err != nil {
		return fmt.Errorf("cannot ask the peer: %w", err)
	}
	return nil
}

// redisTapes encodes GET of the same keys; storeRows wrote their values.
func redisTapes(rows, conns int) []*load.Tape {
	return load.Tapes(load.Deal(0, rows, conns), func(row int) []byte { return load.AppendCommand(nil, "GET", load.PID(row)) })
}

// natsTapes encodes requests as long as GetProcess's, whose replies are, all of a connection alike:
// published to the subject of natsreply, and answered to the connection's own inbox, the only
// subject that it subscribes to.
func natsTapes(conns int) (tapes []*load.Tape) {
	payload := bytes.Repeat([]byte{'p'}, len(load.RowRequest(evaluated, 0)))
	for conn := range conns {
		request := fmt.Appendf(nil, "PUB %s _INBOX.%d %d\r\n%s\r\n", natsSubject, conn, len(payload), payload)
		tape := load.TapeOf(slices.Repeat([][]byte{request}, 64)...)
		tape.Hello = fmt.Appendf(nil, "CONNECT {\"verbose\":false,\"pedantic\":false,\"name\":\"load\"}\r\nSUB _INBOX.%d 1\r\n", conn)
		tapes = append(tapes, tape)
	}
	return tapes
}

// getValue is the value behind every key of the GET peers: 150 bytes, within the 128 to 174 of a
// process reply's own data.
const getValue = 150

// storeRows presets a GET peer.
func storeRows(addr string, n int) error {
	tape := new(load.Tape)
	for i := range n {
		tape.Add(load.AppendCommand(nil, "SET", load.PID(i), strings.Repeat("v", getValue)))
	}
	if err := load.SendOnce(addr, load.RESP, []*load.Tape{tape}, 64); err != nil {
		return fmt.Errorf("cannot store %d keys: %w", n, err)
	}
	return nil
}

// probeReplies asks a server how large its reply to each hot method is, in bytes with prefix, and
// checks that CheckQuota is within bounds. It leaves row 0 READY as it was.
func probeReplies(addr string) (map[string]int, error) {
	c, err := load.Dial(addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	sizes := map[string]int{}
	for _, method := range methods {
		request := []any{"pid", load.PID(0)}
		if method == transitionState {
			request = append(request, "new_state", "RUNNING")
		}
		body, size, err := c.Call("kernel", method, request...)
		if err != nil {
			return nil, fmt.Errorf("cannot probe %s: %w", method, err)
		}
		if within, ok := body["within_bounds"].(bool); ok && !within {
			return nil, fmt.Errorf("cannot measure CheckQuota: over quota: %v", body["exceeded_reason"])
		}
		sizes[method] = size
	}
	_, _, err = c.Call("kernel", transitionState, "pid", load.PID(0), "new_state", "READY")
	return sizes, err
}

// grpcProgram serves the method and makes the calls.
const grpcProgram = "grpcunary"

func (f *field) enterGRPC() error {
	return f.peer(grpcgo, grpcProgram, func(s *load.Server) {
		f.entrants = append(f.entrants, entrant{grpcgo, unary, func(conns, depth int) goal.Step {
			return goal.One(cell(grpcgo, unary, conns, depth), func() (goal.Sample, error) { return f.grpcCell(s, conns, depth) })
		}})
	}, "-reply", f.replySize())
}

// grpcCell has another process make the calls, which prints a sample.
func (f *field) grpcCell(s *load.Server, conns, depth int) (sample goal.Sample, err error) {
	request := len(load.RowRequest(evaluated, 0))
	cmd := exec.Command(filepath.Join(f.bin, grpcProgram), "-load", s.Addr, "-pid", strconv.Itoa(s.PID()), "-conns", strconv.Itoa(conns), "-inflight", strconv.Itoa(depth),
		"-request", strconv.Itoa(request), "-reply", f.replySize(), "-warmup", f.Warmup.String(), "-window", f.Window.String())
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err = load.StartPinned(cmd, f.LoadCPUs); err == nil {
		err = cmd.Wait()
	}
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &sample)
	}
	if err != nil {
		return sample, fmt.Errorf("cannot make gRPC calls: %w: %s", err, strings.TrimSpace(complaints.String()))
	}
	return sample, nil
}
