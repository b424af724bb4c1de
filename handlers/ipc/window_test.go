package ipc

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/runtime"
	"trunkline/fuzz/kit/memstore"
)

// TestFullTablesComeBack: while a snapshot is taken, full tables drop entries that were made a
// moment before. The replay meets the beginning of such an entry when the snapshot has its
// successor already. The start succeeds, and the tables hold what they held.
func TestFullTablesComeBack(t *testing.T) {
	const over = `"terminated":true,"terminal_reason":"COMPLETED"`
	f := func(name string, set limits, method, body string) {
		t.Run(name, func(t *testing.T) {
			disk := memstore.New(memstore.Options{})
			r := newLimitedRig(t, set, journal.Config{}, disk, nil)
			p := r.connect()
			n := 0
			ask := func() {
				t.Helper()
				n++
				p.send(request("1", "engine", method, fmt.Sprintf(body, n)))
				r.settled(p)
				if reply := p.next(); !strings.HasPrefix(reply, "02 ") {
					t.Fatalf("%s %d: %s", method, n, reply)
				}
			}
			ask()
			ask()
			readings, now := 0, r.svc.rt.Config.Now
			r.svc.rt.Config.Now = func() connection.Instant {
				if readings++; readings == 2 { // the table of processes is written, the others are not
					ask()
					ask()
					ask()
				}
				return now()
			}
			if err := r.svc.rt.Store.Snapshot(); err != nil {
				t.Fatal(err)
			}
			r.svc.rt.Config.Now = now
			digest := r.svc.rt.Store.Digest()
			if err := r.log.Close(); err != nil {
				t.Fatal(err)
			}
			lower := func(_ *Config, r *runtime.Config) { r.MaxEnvelopes, r.MaxSessions = 1, 1 } // they are for what is new
			for i, set := range []limits{set, lower} {
				back := newLimitedRig(t, set, journal.Config{}, disk, nil)
				if got := back.svc.rt.Store.Digest(); got != digest {
					t.Errorf("digest %x, was %x: %+v, was %+v", got, digest, back.svc.orch.Stats(), r.svc.orch.Stats())
				}
				r, p = back, back.connect()
				if i == 1 {
					ask()
				}
				if err := r.log.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if got := r.svc.orch.Stats(); got.Envelopes+got.Sessions != 1 {
				t.Errorf("after a request under lower limits: %+v", got)
			}
		})
	}
	f(
		"envelopes",
		func(c *Config, r *runtime.Config) { r.MaxEnvelopes = 2 },
		"CloneEnvelope",
		`{"envelope":{"raw_input":"%d",`+over+`}}`,
	)
	f(
		"sessions",
		func(c *Config, r *runtime.Config) { r.MaxSessions = 2 },
		"ExecutePipeline",
		`{"pipeline_config":{"name":"x","agents":[{"name":"s","agent":"a"}]},"envelope":{"envelope_id":"e%d",`+over+`}}`,
	)
}

// TestOneRequestOneBlock: whatever a request changes beside what it is about, a block ends only
// before it or after it. Each record is so long that two of them would not share a block.
func TestOneRequestOneBlock(t *testing.T) {
	long := strings.Repeat("x", 250)
	pipeline := `"pipeline_config":{"name":"x","agents":[{"name":"s","agent":"a"}]}`
	over := `"terminated":true,"terminal_reason":"COMPLETED"`
	begin := func(pid, envelope string) [3]string {
		return [3]string{"orchestration", "InitializeSession", `{"process_id":"` + pid + `","force":true,"envelope":{` + envelope + `},` + pipeline + `}`}
	}
	create := func(pid string) [3]string {
		return [3]string{"kernel", "CreateProcess", `{"pid":"` + pid + `","user_id":"` + long + `","schedule":true}`}
	}
	end := [3]string{"kernel", "TerminateProcess", `{"pid":"` + long + `"}`}
	clone := [3]string{"engine", "CloneEnvelope", `{"envelope":{"raw_input":"` + long + long + `",` + over + `}}`}
	f := func(name string, set limits, records uint64, requests ...[3]string) {
		t.Run(name, func(t *testing.T) {
			r := newLimitedRig(t, set, journal.Config{MaxBlockBytes: 512}, memstore.New(memstore.Options{}), nil)
			defer r.log.Close()
			p := r.connect()
			var id string // of the first envelope
			for i, q := range requests {
				groups, from := r.log.Stats().Groups, r.log.Appended()
				p.send(request("1", q[0], q[1], strings.ReplaceAll(q[2], "ID", id)))
				r.settled(p)
				reply := p.next()
				if !strings.HasPrefix(reply, "02 ") {
					t.Fatalf("%s: %s", q[1], reply)
				}
				if _, rest, ok := strings.Cut(reply, `"envelope_id":"`); ok && id == "" {
					id, _, _ = strings.Cut(rest, `"`)
				}
				groups, from = r.log.Stats().Groups-groups, r.log.Appended()-from
				if last := i == len(requests)-1; groups != 1 || last && from != records {
					t.Errorf("%s left %d records in %d blocks, want 1 block, and %d records at last", q[1], from, groups, records)
				}
			}
		})
	}
	f(
		"a process takes the place of another",
		func(c *Config, r *runtime.Config) { r.MaxProcesses = 1 },
		4,
		create(long),
		begin(long, `"envelope_id":"e"`),
		end,
		create("p"),
	)
	f("a process ends", nil, 2, create(long), begin(long, `"envelope_id":"e"`), end)
	f("a process moves to its end", nil, 2, create(long), begin(long, `"envelope_id":"e"`),
		[3]string{"kernel", "TransitionState", `{"pid":"` + long + `","new_state":"TERMINATED"}`})
	f("an envelope takes the place of another", func(c *Config, r *runtime.Config) { r.MaxEnvelopes = 1 }, 2, clone,
		[3]string{"engine", "CreateEnvelope", `{"raw_input":"` + long + long + `"}`})
	f("a copy takes the place of another", func(c *Config, r *runtime.Config) { r.MaxEnvelopes = 1 }, 2, clone, clone)
	f("an update answers", nil, 2, [3]string{"engine", "CreateEnvelope", `{"raw_input":"x"}`},
		begin(long, `"envelope_id":"ID","interrupt_pending":true,"interrupt":{"kind":"clarification","id":"i"}`),
		[3]string{"engine", "UpdateEnvelope", `{"envelope":{"envelope_id":"ID","raw_input":"` + long + long + `"}}`})
	f(
		"a session takes the place of another",
		nil,
		2,
		begin(long, `"envelope_id":"e"`),
		begin(long, `"envelope_id":"e"`),
	)
	f("a pipeline ends at once", nil, 2, [3]string{"engine", "ExecutePipeline",
		`{` + pipeline + `,"envelope":{"envelope_id":"` + long + `","llm_call_count":2147483647}}`})
	f(
		"a report takes room",
		func(c *Config, r *runtime.Config) { r.MaxSessionBytes = 40_000 },
		2,
		begin("over", `"envelope_id":"e","raw_input":"`+strings.Repeat(long, 40)+`",`+over),
		begin(long, `"envelope_id":"e"`),
		[3]string{"orchestration", "ReportAgentResult",
			`{"process_id":"` + long + `","agent_name":"a","output":{"n":"` + strings.Repeat(long, 90) + `"}}`},
	)
}
