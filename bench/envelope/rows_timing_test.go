//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/envelope"
	"trunkline/engine/link"
	"trunkline/engine/orchestration"
	"trunkline/handlers/ipc/client"
)

// The rows of the hot path (envelope §10), each with no outputs and with 4 KiB, 64 KiB and 1 MiB of them: what does one call cost
// without frames and sockets, and what does it allocate?

var outputSizes = []int{0, 4 << 10, 64 << 10, 1 << 20}

var start = link.Instant{Mono: int64(time.Hour), Wall: 1767323045000}

func value(tb testing.TB, text string) mpack.Value {
	tb.Helper()
	b, err := client.EncodeJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return mpack.ReadValue(b)
}

// flatWith returns a flat envelope with n bytes of outputs, ended or not.
func flatWith(id string, n int, ended bool) string {
	outputs := "{}"
	if n > 0 {
		outputs = `{"seed":` + findings(n) + `}`
	}
	return fmt.Sprintf(`{`+flatBase+`,"current_stage":"start","terminated":%v,"outputs":%s}`, id, ended, outputs)
}

func nestedWith(id string, n int) string {
	outputs := "{}"
	if n > 0 {
		outputs = `{"seed":` + findings(n) + `}`
	}
	return fmt.Sprintf(`{"identity":{"envelope_id":%q,"request_id":"r","user_id":"u","session_id":"s"},"pipeline":{"current_stage":"start"},"bounds":{},"outputs":%s}`, id, outputs)
}

// row is a call of the orchestration engine that is made again and again.
type row struct {
	name string
	make func(b *testing.B, o *orchestration.Engine, n int) func(c *orchestration.Call, out []byte) ([]byte, wire.Code)
}

// begun starts a session named p.
func begun(b *testing.B, o *orchestration.Engine, pid, env string) {
	b.Helper()
	c := &orchestration.Call{Now: start}
	a := &orchestration.InitArgs{ProcessID: []byte(pid), Config: value(b, pipeline), Envelope: value(b, env), Force: true}
	if _, code := o.Initialize(c, a, nil); code != wire.OK {
		b.Fatalf("%v: %s", code, c.Msg)
	}
}

func reports(b *testing.B, pid string, output int) [2]*orchestration.Report {
	b.Helper()
	var both [2]*orchestration.Report
	for i, agent := range []string{"a1", "a2"} {
		both[i] = &orchestration.Report{ProcessID: []byte(pid), AgentName: []byte(agent), LLMCalls: 1, TokensIn: 310, HasTokensIn: true,
			Output: value(b, `{"verdict":"go","result":`+findings(output)+`}`).Data}
	}
	return both
}

func reportRow(env func(id string, n int) string) func(*testing.B, *orchestration.Engine, int) func(*orchestration.Call, []byte) ([]byte, wire.Code) {
	return func(b *testing.B, o *orchestration.Engine, n int) func(*orchestration.Call, []byte) ([]byte, wire.Code) {
		begun(b, o, "p", env("e", n))
		both, i := reports(b, "p", 200), 0
		return func(c *orchestration.Call, out []byte) ([]byte, wire.Code) {
			i++
			return o.Report(c, both[(i+1)%2], out)
		}
	}
}

func nextRow(b *testing.B, o *orchestration.Engine, n int) func(*orchestration.Call, []byte) ([]byte, wire.Code) {
	begun(b, o, "p", flatWith("e", n, false))
	return func(c *orchestration.Call, out []byte) ([]byte, wire.Code) { return o.Next(c, []byte("p"), out) }
}

func stateRow(b *testing.B, o *orchestration.Engine, n int) func(*orchestration.Call, []byte) ([]byte, wire.Code) {
	begun(b, o, "p", flatWith("e", n, false))
	return func(c *orchestration.Call, out []byte) ([]byte, wire.Code) { return o.State(c, []byte("p"), out) }
}

func boundsRow(b *testing.B, o *orchestration.Engine, n int) func(*orchestration.Call, []byte) ([]byte, wire.Code) {
	body := value(b, flatWith("e", n, false)).Data
	return func(c *orchestration.Call, out []byte) ([]byte, wire.Code) { return o.CheckBounds(c, body, out) }
}

// createRow fills the store; the clock runs so fast that the oldest envelope may always go.
func createRow(b *testing.B, o *orchestration.Engine, n int) func(*orchestration.Call, []byte) ([]byte, wire.Code) {
	a := &orchestration.CreateArgs{RawInput: []byte("trace login"), Metadata: value(b, `{"m":`+findings(max(n, 100))+`}`).Data}
	return func(c *orchestration.Call, out []byte) ([]byte, wire.Code) {
		c.Now.Mono += int64(time.Minute)
		return o.CreateEnvelope(c, a, out)
	}
}

func cloneRow(b *testing.B, o *orchestration.Engine, n int) func(*orchestration.Call, []byte) ([]byte, wire.Code) {
	env := value(b, flatWith("e", n, true))
	return func(c *orchestration.Call, out []byte) ([]byte, wire.Code) { return o.CloneEnvelope(c, env, out) }
}

func updateRow(b *testing.B, o *orchestration.Engine, n int) func(*orchestration.Call, []byte) ([]byte, wire.Code) {
	c := &orchestration.Call{Now: start}
	stored, code := o.CloneEnvelope(c, value(b, flatWith("e", n, false)), nil)
	if code != wire.OK {
		b.Fatalf("%v: %s", code, c.Msg)
	}
	env := mpack.ReadValue(stored)
	return func(c *orchestration.Call, out []byte) ([]byte, wire.Code) { return o.UpdateEnvelope(c, env, out) }
}

func initializeRow(b *testing.B, o *orchestration.Engine, n int) func(*orchestration.Call, []byte) ([]byte, wire.Code) {
	a := &orchestration.InitArgs{ProcessID: []byte("p"), Config: value(b, pipeline), Envelope: value(b, flatWith("e", n, false)), Force: true}
	return func(c *orchestration.Call, out []byte) ([]byte, wire.Code) { return o.Initialize(c, a, out) }
}

// executeRow begins sessions of ended envelopes: the table always gives one up. The id's last byte and those before it are counted up.
func executeRow(b *testing.B, o *orchestration.Engine, n int) func(*orchestration.Call, []byte) ([]byte, wire.Code) {
	config, text := value(b, pipeline), flatWith("env_"+strings.Repeat("0", 16), n, true)
	env := value(b, text)
	at := strings.Index(string(env.Data), "env_") + len("env_")
	id, i := env.Data[at:at+16], 0
	return func(c *orchestration.Call, out []byte) ([]byte, wire.Code) {
		i++
		copy(id, fmt.Sprintf("%016x", i))
		return o.ExecutePipeline(c, env, config, out)
	}
}

func BenchmarkRows(b *testing.B) {
	for _, r := range []row{
		{"GetNextInstruction", nextRow},
		{"ReportAgentResult/flat", reportRow(func(id string, n int) string { return flatWith(id, n, false) })},
		{"ReportAgentResult/nested", reportRow(nestedWith)},
		{"CheckBounds", boundsRow},
		{"CreateEnvelope", createRow},
		{"InitializeSession", initializeRow},
		{"ExecutePipeline", executeRow},
		{"GetSessionState", stateRow},
		{"UpdateEnvelope", updateRow},
		{"CloneEnvelope", cloneRow},
	} {
		for _, n := range outputSizes {
			b.Run(fmt.Sprintf("%s/%d", r.name, n), func(b *testing.B) {
				o := orchestration.New(orchestration.Config{MaxEnvelopes: 100, MaxSessions: 100})
				call := r.make(b, o, n)
				c := &orchestration.Call{Now: start}
				var out []byte
				var code wire.Code
				b.ReportAllocs()
				for b.Loop() {
					if out, code = call(c, out[:0]); code != wire.OK {
						b.Fatalf("%v: %s", code, c.Msg)
					}
				}
				b.SetBytes(int64(len(out)))
			})
		}
	}
}

// BenchmarkProcess: one engine step of boundary A, beside decoding the same bytes into a map and encoding that again.
func BenchmarkProcess(b *testing.B) {
	for _, n := range outputSizes {
		src := flatEnvelope(max(n, 600))
		b.Run(fmt.Sprintf("engine/%d", n), func(b *testing.B) {
			engine := envelope.NewEngine(envelope.Options{})
			var dst []byte
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				out, _, err := engine.Process(dst[:0], src)
				if err != nil {
					b.Fatal(err)
				}
				dst = out
			}
		})
		b.Run(fmt.Sprintf("json/%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				var m map[string]any
				if err := json.Unmarshal(src, &m); err != nil {
					b.Fatal(err)
				}
				if _, err := json.Marshal(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSessions: how many steps per second do 1, 64 and 1000 sessions make together, one worker to each processor?
func BenchmarkSessions(b *testing.B) {
	for _, sessions := range []int{1, 64, 1000} {
		b.Run(fmt.Sprint(sessions), func(b *testing.B) {
			o := orchestration.New(orchestration.Config{})
			all := make([][2]*orchestration.Report, sessions)
			for i := range all {
				pid := processID(i)
				begun(b, o, pid, flatWith("e", 1024, false))
				all[i] = reports(b, pid, 200)
			}
			var workers atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				c := &orchestration.Call{Now: start}
				var out []byte
				var code wire.Code
				// A worker has sessions of its own; of a single session each worker takes whatever step is due.
				for at, turn := int(workers.Add(1))-1, 0; pb.Next(); turn++ {
					both := &all[(at+2*(turn/2))%sessions]
					for try := turn; ; try++ {
						if out, code = o.Report(c, both[try%2], out[:0]); code == wire.OK {
							break
						}
						if code != wire.FailedPrecondition {
							b.Errorf("%v: %s", code, c.Msg)
							return
						}
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}
