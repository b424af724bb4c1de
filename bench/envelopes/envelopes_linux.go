// Package envelopes measures the envelope engine and the orchestration sessions beside what people
// would write, and evaluates their goals.
//
// Each section answers one question. step: what does an engine step cost next to decoding the same
// envelope into a map and encoding it again, which is the least a server does that has no model of
// its own? Both run in this process in turns. report: what does an agent's step cost next to the
// same decision on maps behind net/http and encoding/json? As many requests are in flight in both:
// pipelined on one connection here, on a connection each there, because HTTP/1.1 does not answer
// out of turn. process: what does a caller wait for who starts the program for every envelope?
package envelopes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
	"trunkline/engine/envelope"
)

// childPeer is this program as the net/http server that trunkline is compared with.
const childPeer = "envelopes-peer"

// Part measures the engine's steps and agents' reports.
func Part() part.Part {
	return part.Part{
		Name: "envelopes", What: "engine steps and agents' reports beside what people would write",
		Defaults: func(o *part.Options) { o.Depth, o.Warmup, o.Window = 32, 300*time.Millisecond, 2*time.Second },
		Children: map[string]func([]string) error{childPeer: func([]string) error { return load.ServeHTTP(newPeer()) }},
		Run: func(r *part.Run) error {
			return r.Sections(part.Section{Name: "step", Measure: step}, part.Section{Name: "report", Measure: report}, part.Section{Name: "process", Measure: process})
		},
	}
}

// stepBatch is how many calls one side makes before it is the other's turn: short, so that what
// else the machine does hits both.
const stepBatch = 50

// step compares one engine step with decoding the same bytes into a map and encoding that again.
func step(r *part.Run) error {
	src := flatEnvelope(stepSize)
	engine := envelope.NewEngine(envelope.Options{})
	var dst []byte
	us, them := goal.Cell{Server: "engine", Method: "step"}, goal.Cell{Server: "encoding/json",
		Method: "decode and encode"}
	ours := func() error {
		out, _, err := engine.Process(dst[:0], src)
		dst = out
		if err != nil { // of a type of its own
			return err
		}
		return nil
	}
	theirs := func() error {
		var m map[string]any
		if err := json.Unmarshal(src, &m); err != nil {
			return err
		}
		_, err := json.Marshal(m)
		return err
	}
	err := r.Rounds([]goal.Step{{Name: "steps", Measure: func() ([]goal.Sample, error) {
		samples := []goal.Sample{{Cell: us}, {Cell: them}}
		for end := time.Now().Add(r.Window); time.Now().Before(end); {
			if err := errors.Join(addBatch(&samples[0], ours), addBatch(&samples[1], theirs)); err != nil {
				return nil, err
			}
		}
		return samples, nil
	}}})
	atLeast(r, 5, fmt.Sprintf("CPU of encoding/json decode to map and encode over that of an engine step, on %d bytes", len(src)), r.Report.Ratio(them, us, goal.CPU))
	return err
}

// addBatch adds a batch of calls to a sample. Its CPU time is the whole process's, so that garbage
// collection counts for the side that made the garbage.
func addBatch(s *goal.Sample, call func() error) error {
	before := cpuTime()
	for range stepBatch {
		if err := call(); err != nil {
			return err
		}
	}
	spent := s.CPU*float64(s.Requests) + cpuTime() - before
	s.Requests += stepBatch
	s.CPU = spent / float64(s.Requests)
	return nil
}

// cpuTime is the nanoseconds that this process has used.
func cpuTime() float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic("BUG: the process has no clock: " + err.Error())
	}
	return float64(t.Nano())
}

// atLeast adds a goal of one ratio.
func atLeast(r *part.Run, must float64, what string, ratio float64) {
	g := goal.Goal{What: what, Must: must, AtLeast: true}
	g.Add("ratio", ratio)
	r.Report.Goal(g)
}

// report compares ReportAgentResult → next instruction with the same work of the peer.
func report(r *part.Run) error {
	ours, err := r.Trunkline(fmt.Sprintf("kernel.loops=%d", r.Loops))
	if err != nil {
		return err
	}
	theirs, err := r.Child("net/http", childPeer)
	if err != nil {
		return err
	}
	calls, posts, pipelined, kept := new(load.Tape), new(load.Tape), new(load.Tape), make([]*load.Tape, r.Depth)
	for i := range kept {
		calls.Add(call("InitializeSession", beginBody(i)))
		posts.Add(load.AppendPost(nil, beginPath, []byte(beginBody(i))))
		kept[i] = new(load.Tape)
	}
	for _, agent := range []string{"a1", "a2"} {
		for i := range kept {
			pipelined.Add(call("ReportAgentResult", reportBody(i, agent)))
			kept[i].Add(load.AppendPost(nil, reportPath, []byte(reportBody(i, agent))))
		}
	}
	err = errors.Join(load.SendOnce(ours.Addr, load.Kernel, []*load.Tape{calls}, 8), load.SendOnce(theirs.Addr, load.HTTP, []*load.Tape{posts}, 1))
	if err != nil {
		return fmt.Errorf("cannot begin sessions: %w", err)
	}
	us := goal.Cell{Server: ours.Name, Method: "report", Conns: 1, Depth: r.Depth}
	them := goal.Cell{Server: theirs.Name, Method: "report", Conns: r.Depth, Depth: 1}
	err = r.Rounds([]goal.Step{r.Step(us, ours, r.Config(ours.Addr, load.Kernel, []*load.Tape{pipelined}, r.Depth)),
		r.Step(them, theirs, r.Config(theirs.Addr, load.HTTP, kept, 1))})
	atLeast(r, 10, fmt.Sprintf("server CPU of a report, %d in flight, net/http and encoding/json over ours", r.Depth), r.Report.Ratio(them, us, goal.CPU))
	atLeast(r, 10, fmt.Sprintf("reports/s, %d in flight, ours over net/http and encoding/json", r.Depth), r.Report.Ratio(us, them, goal.Rate))
	return err
}

// call is a request whose body is JSON that is part of this program.
func call(method, body string) []byte {
	b, err := transcode.EncodeJSON([]byte(body))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return frame.Append(nil, frame.Request, mpack.AppendRequest(nil, "r0000001", "orchestration", method,
		string(b)), nil)
}

// process starts one process per envelope, and asks for the same over kept HTTP connections.
func process(r *part.Run) error {
	body := flatEnvelope(stepSize)
	s, err := r.Trunkline(fmt.Sprintf("kernel.loops=%d", r.Loops))
	if err != nil {
		return err
	}
	one := goal.Cell{Server: "trunkline process", Method: "process", Via: "stdin", Conns: 1, Depth: 1}
	steps := []goal.Step{goal.One(one, func() (goal.Sample, error) {
		return load.Starts(func() *exec.Cmd {
			cmd := exec.Command(r.Binary, "process")
			cmd.Stdin = bytes.NewReader(body)
			return cmd
		}, func(out []byte) error {
			if !bytes.HasSuffix(out, []byte("}\n")) || !bytes.Contains(out, []byte(`"current_stage":"intent"`)) {
				return errors.New("the stage after the first is not in it")
			}
			return nil
		}, func(_ int, passed time.Duration) bool { return passed >= r.Window })
	})}
	for _, conns := range []int{1, 32} {
		tapes := make([]*load.Tape, conns)
		for i := range tapes {
			tapes[i] = load.TapeOf(load.AppendPost(nil, "/api/v1/process", body))
		}
		cfg := r.Config(s.Listener("http"), load.HTTP, tapes, 1)
		cfg.Spin = r.Spin && conns > 1
		steps = append(steps, r.Step(goal.Cell{Server: s.Name, Method: "process", Via: "HTTP"}, s, cfg))
	}
	err = r.Rounds(steps)
	g := goal.Goal{What: "CPU of trunkline process from start to end, ms", Must: 15}
	g.Add("median", r.Report.Median(one, goal.CPU)/1e6)
	r.Report.Goal(g)
	return err
}

const (
	// stepSize is the size of the envelope in bytes that the goals of step and process are about.
	stepSize = 4 << 10
	// outputs and reported are the bytes of outputs that a session's envelope begins with, and that
	// every report brings.
	outputs, reported = 1024, 200
)

// flatBase are the members of a flat envelope that every measurement has.
const flatBase = `"envelope_id":"%s","request_id":"req_00000000000000b2","user_id":"u1","session_id":"sess_00000000000000c3",` +
	`"raw_input":"trace login","received_at":"2025-12-10T10:00:00Z","metadata":{"channel":"cli","trace":[1,2.5,null,true]}`

// findings returns a JSON object of about n bytes as agents make them: short members, numbers,
// lists of small maps and some text.
func findings(n int) string {
	var b strings.Builder
	b.WriteString(`{"status":"success","confidence":0.87,"items":[`)
	for i := 0; b.Len() < n-90; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"path":"src/login/handler_%d.py","score":%d.5,"ok":true,"note":"matched the \"login\" route"}`, i, i, i%10)
	}
	b.WriteString(`],"summary":"done"}`)
	return b.String()
}

// flatEnvelope returns a flat envelope of about n bytes whose first stage has just been finished.
func flatEnvelope(n int) []byte {
	const rest = `,"stage_order":["perception","intent","plan","execution","critic","integration"],"current_stage":"start","terminated":false,` +
		`"iteration":0,"max_iterations":3,"llm_call_count":1,"max_llm_calls":10,"agent_hop_count":0,"max_agent_hops":21,"outputs":{"perception":`
	head := "{" + fmt.Sprintf(flatBase, "env_00000000000000a1") + rest
	return []byte(head + findings(n-len(head)-2) + "}}")
}

// pipeline goes round two stages for as long as 32-bit counters last, by a rule on the output of
// each.
const pipeline = `{"name":"bench","max_iterations":2147483647,"max_llm_calls":2147483647,"max_agent_hops":2147483647,"agents":[` +
	`{"name":"s1","agent":"a1","routing":[{"condition":"verdict","value":"stop","target":"end"},{"condition":"verdict","value":"go","target":"s2"}]},` +
	`{"name":"s2","agent":"a2","routing":[{"condition":"verdict","value":"stop","target":"end"},{"condition":"verdict","value":"go","target":"s1"}]}],` +
	`"edge_limits":[{"from_stage":"s1","to_stage":"s2","max_count":2147483647}]}`

// beginBody is InitializeSession's body for session i.
func beginBody(i int) string {
	return fmt.Sprintf(`{"process_id":"session-%d","pipeline_config":%s,"envelope":{%s,"current_stage":"start","outputs":{"seed":%s}}}`,
		i, pipeline, fmt.Sprintf(flatBase, fmt.Sprintf("env_%016x", i)), findings(outputs))
}

// reportBody is ReportAgentResult's body for session i.
func reportBody(i int, agent string) string {
	return fmt.Sprintf(`{"process_id":"session-%d","agent_name":%q,"output":{"verdict":"go","result":%s},"success":true,"error":"",`+
		`"metrics":{"llm_calls":1,"tool_calls":2,"tokens_in":310,"tokens_out":42,"duration_ms":12}}`, i, agent, findings(reported))
}
