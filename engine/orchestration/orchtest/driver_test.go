package orchtest

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/connection"
	"trunkline/engine/orchestration"
)

// dayZero is the clock of the worked examples (envelope §9).
var dayZero = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// clock is dayZero on both clocks, the monotonic one from an origin of its own.
func clock() connection.Instant {
	return connection.Instant{Mono: int64(time.Hour), Wall: dayZero.UnixMilli()}
}

// after is now d later.
func after(now connection.Instant, d time.Duration) connection.Instant {
	return connection.Instant{Mono: now.Mono + int64(d), Wall: now.Wall + d.Milliseconds()}
}

// stamp is now as the server writes times (envelope §3.6).
func stamp(now connection.Instant) string {
	return time.UnixMilli(now.Wall).UTC().Format("2006-01-02T15:04:05.000000Z")
}

// roomy is a configuration in which nothing is scarce.
func roomy() orchestration.Config {
	var ids atomic.Uint64
	return orchestration.Config{
		MaxSessions: 10000, MaxSessionBytes: 1 << 40, SessionRetention: time.Hour,
		MaxEnvelopes: 10000, MaxEnvelopeBytes: 1 << 40, EnvelopeRetention: 24 * time.Hour,
		MaxReply: wire.DefaultMaxFrame - 4096,
		NewID:    func(dst []byte) []byte { return fmt.Appendf(dst, "%016x", ids.Add(1)) },
	}
}

// reply is an answer of the engine: a body, or a code other than OK with its message.
type reply struct {
	code      wire.Code
	msg       string
	retryable bool
	body      []byte // valid until the driver's next call
}

// driver calls one engine as a handler does: arguments are lent and overwritten after the call,
// replies are appended to what is already in the output. It is for one goroutine.
type driver struct {
	e    *orchestration.Engine
	now  connection.Instant
	call orchestration.Call
	out  []byte
	lent [][]byte
}

func drive(cfg orchestration.Config) *driver { return over(orchestration.New(cfg)) }

func over(e *orchestration.Engine) *driver { return &driver{e: e, now: clock()} }

// bytes lends b to the engine for one call.
func (d *driver) bytes(b []byte) []byte {
	d.lent = append(d.lent, b)
	return b
}

func (d *driver) text(s string) []byte { return d.bytes([]byte(s)) }

// value lends an argument: nil stands for an absent one, a string for text, a map for a map.
func (d *driver) value(v any) mpack.Value {
	switch v := v.(type) {
	case absent:
		return mpack.Value{}
	case string:
		return mpack.Value{Kind: mpack.Str, Data: d.text(v)}
	case obj, rawMsg:
		return mpack.Value{Kind: mpack.Map, Data: d.bytes(pack(nil, v))}
	case mpack.Value:
		return v
	}
	panic(fmt.Sprintf("cannot lend a %T", v))
}

// absent stands for an argument that the request does not have.
type absent struct{}

const head = "what was there"

// done ends a call: the arguments' bytes die, the reply is looked at.
func (d *driver) done(out []byte, code wire.Code) reply {
	for i, b := range d.lent {
		for k := range b {
			b[k] = 0xc1
		}
		d.lent[i] = nil
	}
	d.lent, d.out = d.lent[:0], out
	if !strings.HasPrefix(string(out), head) || code != wire.OK && len(out) != len(head) {
		panic(fmt.Sprintf("%s: the output before the reply changed, or a refusal wrote into it: %q", code, out))
	}
	if code != wire.OK {
		return reply{code: code, msg: string(d.call.Msg), retryable: d.call.Retryable}
	}
	return reply{body: out[len(head):]}
}

func (d *driver) begin() (*orchestration.Call, []byte) {
	d.call.Now = d.now
	return &d.call, append(d.out[:0], head...)
}

func (d *driver) initialize(pid string, config, env any, force bool) reply {
	c, out := d.begin()
	return d.done(d.e.Initialize(c, &orchestration.InitArgs{ProcessID: d.text(pid), Config: d.value(config), Envelope: d.value(env), Force: force}, out))
}

func (d *driver) next(pid string) reply {
	c, out := d.begin()
	return d.done(d.e.Next(c, d.text(pid), out))
}

func (d *driver) state(pid string) reply {
	c, out := d.begin()
	return d.done(d.e.State(c, d.text(pid), out))
}

// report is a report as a caller writes it.
type report struct {
	agent               string
	failed              bool
	err                 string
	output              obj // nil: none
	llm, tool           int64
	tokensIn, tokensOut int64 // negative: unknown
}

func (d *driver) report(pid string, r report) reply {
	c, out := d.begin()
	a := orchestration.Report{
		ProcessID: d.text(pid), AgentName: d.text(r.agent), Failed: r.failed, Error: d.text(r.err),
		LLMCalls: r.llm, ToolCalls: r.tool,
	}
	if r.output != nil {
		a.Output = d.bytes(pack(nil, r.output))
	}
	if r.tokensIn >= 0 {
		a.TokensIn, a.HasTokensIn = r.tokensIn, true
	}
	if r.tokensOut >= 0 {
		a.TokensOut, a.HasTokensOut = r.tokensOut, true
	}
	return d.done(d.e.Report(c, &a, out))
}

// reportRaw reports an output given as MessagePack.
func (d *driver) reportRaw(c *orchestration.Call, pid, agent string, output, out []byte) ([]byte, wire.Code) {
	return d.e.Report(c, &orchestration.Report{ProcessID: d.text(pid), AgentName: d.text(agent), Output: d.bytes(output)}, out)
}

func (d *driver) update(env any) reply {
	c, out := d.begin()
	return d.done(d.e.UpdateEnvelope(c, d.value(env), out))
}

func (d *driver) clone(env any) reply {
	c, out := d.begin()
	return d.done(d.e.CloneEnvelope(c, d.value(env), out))
}

func (d *driver) execute(env, config any) reply {
	c, out := d.begin()
	return d.done(d.e.ExecutePipeline(c, d.value(env), d.value(config), out))
}

func (d *driver) checkBounds(body obj) reply {
	c, out := d.begin()
	return d.done(d.e.CheckBounds(c, d.bytes(pack(nil, body)), out))
}

func (d *driver) create(a orchestration.CreateArgs) reply {
	c, out := d.begin()
	return d.done(d.e.CreateEnvelope(c, &a, out))
}

func (d *driver) ended(pid string) {
	c, _ := d.begin()
	d.e.Cancel(d.text(pid))
	d.e.ProcessEnded(c, d.text(pid))
	d.done([]byte(head), wire.OK)
}

func (d *driver) removed(pid string) {
	d.e.ProcessRemoved(d.text(pid))
	d.done([]byte(head), wire.OK)
}

func (d *driver) stage(pid string) string {
	s := d.e.CurrentStage(d.text(pid))
	d.done([]byte(head), wire.OK)
	return strings.Clone(s)
}

const (
	maxCounter = math.MaxInt32
	maxTokens  = math.MaxInt64
)
