package scale

import (
	"fmt"
	"slices"
	"strings"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

const (
	// smallRows is the table that the others are compared with.
	smallRows = 10_000
	// memoryRows is from where on a table's fixed part counts nothing beside its rows.
	memoryRows = 1_000_000
	// replace is the name of creation and termination by turns, each on average, at a size that
	// stays: each creation evicts a process that has ended.
	replace = "Create+Terminate"
	// create is the name of creation while the table grows.
	create = "CreateProcess while it grows"
)

func hotMethods() []string {
	return []string{"GetProcess", "RecordUsage", "CheckQuota", "TransitionState"}
}

// rowMethods are measured at each size, in this order.
func rowMethods() []string { return append(hotMethods(), replace) }

// tapes encodes the requests of a method about the rows of hands. A small hand is repeated, so that
// the generator reads as much of its own memory beside every table.
func tapes(method string, hands [][]int) []*load.Tape {
	if method == replace {
		return replaceTapes(len(hands))
	}
	encoders := load.RowEncoders(method)
	times := load.MaxTape / max(1, len(hands[0])) / len(encoders)
	return load.Tapes(hands, slices.Repeat(encoders, max(1, times))...)
}

// replaceTapes creates and terminates processes with 36-byte identifiers that the tapes count up.
func replaceTapes(conns int) (tapes []*load.Tape) {
	for conn := range conns {
		tape := new(load.Tape)
		pid := fmt.Sprintf("5ca%05x-0000-4000-8000-%s", conn, load.Placeholder)
		tape.AddFresh(load.CreateRequest(pid))
		tape.Add(load.NewRequest("kernel", "TerminateProcess", "pid", pid))
		tapes = append(tapes, tape)
	}
	return tapes
}

// rows measures tables of all sizes in turns. Profiles are those of the largest.
func rows(r *part.Run) error {
	var all []*server
	var steps []goal.Step
	loads := map[string]load.Config{} // of the last one
	for _, n := range tens(min(smallRows, r.Rows/10), r.Rows) {
		s, err := way{name: count(n) + " rows", rows: n}.start(r)
		if err != nil {
			return err
		}
		hands := load.Deal(0, n, conns)
		for _, method := range rowMethods() {
			loads[method] = s.config(tapes(method, hands))
			steps = append(steps, r.Step(s.cell(method), s.Server, loads[method]))
		}
		all = append(all, s)
	}
	if err := r.Rounds(steps); err != nil {
		return err
	}
	growth(r.Report, all)
	last := all[len(all)-1]
	for method, cfg := range loads {
		if err := r.Profiled(method+", "+last.name, last.Server, cfg); err != nil {
			return err
		}
	}
	return nil
}

// growth makes charts and goals of what the tables showed; the first one is what the others are
// compared with.
func growth(r *part.Report, all []*server) {
	cost := goal.Chart{Name: "rows", Title: "What a request costs as the table grows", X: "rows", Y: "server CPU µs/request"}
	memory := goal.Chart{Name: "row-memory", Title: "Resident memory of a process as the table grows", X: "rows", Y: "bytes/row"}
	g := goal.Goal{ID: "G5", What: "growth of server CPU per request beside " + all[0].name, Must: 1.8, Moonshot: 1.5}
	row := goal.Goal{ID: "G10", What: "resident bytes per live process with 36-byte identifiers", Must: 380, Moonshot: 256}
	for i, s := range all {
		for _, method := range append(rowMethods(), create) {
			cost.Add(method, float64(s.rows), r.Median(s.cell(method), micros))
			if i > 0 && method != create {
				g.Add(method+" "+s.name, r.Ratio(s.cell(method), all[0].cell(method), goal.CPU))
			}
		}
		memory.Add("RSS", float64(s.rows), s.memory)
		if s.rows >= memoryRows || i == len(all)-1 {
			row.Add(s.name, s.memory)
		}
	}
	r.Charts = append(r.Charts, cost, memory)
	r.Goal(g)
	r.Goal(row)
}

// payloadConns and payloadDepth carry payloads: with all in flight 64 MiB at the largest.
const payloadConns, payloadDepth = 4, 16

// payloadSizes are in bytes.
func payloadSizes() []int {
	return []int{100, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}
}

// Methods that carry a payload.
const (
	published = "Publish: in"
	stated    = "GetSessionState: out"
	updated   = "UpdateEnvelope: in and out"
)

// carry returns the requests that carry n bytes of text, after what the server has to hold for
// them: a session whose state is the text, and an envelope that is replaced by one with the text.
func carry(addr string, n int) (map[string][]byte, error) {
	with := func(envelope string) load.Raw {
		return load.Map("envelope_id", envelope, "raw_input", strings.Repeat("x", n))
	}
	id, pipeline := fmt.Sprintf("scale-%d", n), `{"name":"n","agents":[{"name":"s1","agent":"a1"}]}`
	_, err := load.Ask(addr, "orchestration", "InitializeSession", "process_id", id, "pipeline_config", pipeline, "envelope", with("e"), "force", true)
	if err != nil {
		return nil, fmt.Errorf("cannot begin a session: %w", err)
	}
	envelope, err := load.CreateEnvelope(addr)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		published: load.Publish(eventType, n, "scale"),
		stated:    load.NewRequest("orchestration", "GetSessionState", "process_id", id),
		updated:   load.NewRequest("engine", "UpdateEnvelope", "envelope", with(envelope)),
	}, nil
}

// payloads measures methods with payloads of all sizes in turns.
func payloads(r *part.Run) error {
	s, err := way{}.start(r)
	if err != nil {
		return err
	}
	cell := func(method string, n int) goal.Cell {
		return goal.Cell{Server: fmt.Sprintf("%d bytes", n), Method: method, Conns: payloadConns, Depth: payloadDepth}
	}
	var steps []goal.Step
	methods := []string{published, stated, updated}
	for _, n := range payloadSizes() {
		tapes := map[string][]*load.Tape{}
		for range payloadConns {
			requests, err := carry(s.Addr, n)
			if err != nil {
				return err
			}
			for method, request := range requests {
				tapes[method] = append(tapes[method], load.TapeOf(request))
			}
		}
		for _, method := range methods {
			steps = append(steps, r.Step(cell(method, n), s.Server, load.Config{Addr: s.Addr, Tapes: tapes[method], Depth: payloadDepth, CPUs: s.cpus}))
		}
	}
	if err := r.Rounds(steps); err != nil {
		return err
	}
	each := goal.Chart{Name: "payload", Title: "What a request costs as its payload grows", X: "bytes of payload", Y: "server CPU µs/request"}
	kib := goal.Chart{Name: "payload-kib", Title: "What a KiB of payload costs as the payload grows", X: "bytes of payload", Y: "server CPU µs/KiB"}
	for _, method := range methods {
		for i, n := range payloadSizes() {
			cost := r.Report.Median(cell(method, n), micros)
			each.Add(method, float64(n), cost)
			if i > 0 { // in the smallest, the rest of the request costs more than its bytes
				kib.Add(method, float64(n), cost/(float64(n)/1024))
			}
		}
	}
	r.Report.Charts = append(r.Report.Charts, each, kib)
	return nil
}
