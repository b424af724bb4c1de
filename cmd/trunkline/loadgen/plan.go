package loadgen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"trunkline/codec/jsonx"
)

// The limits of a plan.
const (
	// maxConns is the largest number of connections: each costs two goroutines and some 10 KiB.
	maxConns = 10_000
	// maxDepth is the largest number of requests in flight on one connection: three hexadecimal
	// digits of its id are the place.
	maxDepth = 1_024
	// maxInFlight bounds connections times depth: the places of all connections take some 50 MB
	// then.
	maxInFlight = 1 << 20
	// MaxRate is the greatest rate of a schedule, in requests/s: above it a nanosecond clock has
	// too few values for them.
	MaxRate = 10_000_000
	// MaxDuration bounds warming up and measuring together.
	MaxDuration = 24 * time.Hour
	// maxShares bounds the mix: each method has its own histograms.
	maxShares = 64
	// maxErrorKinds bounds the codes that are counted apart; further ones count as otherErrors.
	maxErrorKinds = 32
	// maxBodyBytes bounds the body of one share, as most servers bound a request.
	maxBodyBytes = 4 << 20
	// keptIntervals bounds Result.Intervals: above it neighbours are joined two by two, so that a
	// run of a day keeps its shape in some 70 MB.
	keptIntervals = 256
)

// The protocols of a Target.
const (
	ProtocolKernel   = "kernel"
	ProtocolToolhost = "toolhost"
	ProtocolHTTP     = "http"
	ProtocolThreads  = "threads"
	ProtocolExacta   = "exacta"
)

// Protocols lists what the protocol of a Target may be.
func Protocols() []string {
	return []string{ProtocolKernel, ProtocolToolhost, ProtocolThreads, ProtocolExacta, ProtocolHTTP}
}

// Target is the server under load.
type Target struct {
	// Protocol is one of the Protocol constants.
	Protocol string
	// Addr is host:port, tcp://host:port, tls://host:port or unix:///path; for ProtocolHTTP a URL.
	Addr string
	// TLS is for all connections; nil is the default for tls:// and https://, and none for others.
	TLS *tls.Config
	// Dial connects in another way; nil is to Addr.
	Dial func(ctx context.Context) (net.Conn, error)
	// Token is what connections of ProtocolToolhost, ProtocolThreads and ProtocolExacta
	// authenticate with; "" is none, which ProtocolThreads does not take.
	Token string
}

// ScheduleKind is the course of the rate.
type ScheduleKind uint8

// The kinds of schedules.
const (
	// Constant has the rate To all the time.
	Constant ScheduleKind = iota
	// Ramp goes evenly from From at the start of measuring to To at its end; warming up is at
	// From.
	Ramp
	// Max keeps every connection at its depth: a closed loop, whose latencies show nothing about a
	// server at a given rate.
	Max
)

// Schedule is when requests are due.
type Schedule struct {
	Kind     ScheduleKind
	From, To float64 // requests/s; Constant uses To, Max none
}

// Share is one method of the mix.
type Share struct {
	// Name is SERVICE.METHOD for ProtocolKernel (kernel. may be left out), a tool id for
	// ProtocolToolhost, a method for ProtocolThreads, a command for ProtocolExacta, any name
	// for ProtocolHTTP.
	Name string
	// Weight is its part of the requests, relative to the other weights; at least 1.
	Weight int
	// Body is JSON with placeholders (trunkline bench --help): the method's body, params or
	// payload, the whole line, or the envelope; nil takes the one built in for Name. Placeholders
	// have a fixed width; without quotes around them {{seq}} and {{conn}} are numbers.
	Body []byte
}

// Plan is one run.
type Plan struct {
	Target   Target
	Schedule Schedule
	// Mix is what is asked; none takes DefaultMix. Check completes it.
	Mix []Share
	// Conns is the number of connections, Depth the most requests in flight on one of them.
	Conns, Depth int
	// Threads is how many threads {{thread}} stands for, which the connections share evenly; 0 is
	// one for each of them. For ProtocolThreads only.
	Threads int
	// Watch has them followed while the run lasts.
	Watch Watch
	// Warmup comes before Duration, which is measured; only the latter counts in Result.Total.
	Warmup, Duration time.Duration
	// Count ends the run once so many requests are measured, 0 never.
	Count int64
	// Timeout is how long one request may take from its intended start.
	Timeout time.Duration
	// Interval is how often observe is called.
	Interval time.Duration
	// Resend has requests sent again, on a new connection, that the server refuses because it
	// drains, or whose connection ends before their answer: what a client does that reconnects.
	// One that the server answered to a lost connection is done twice. For ProtocolKernel only.
	Resend bool
	// Seed makes the order of the mix repeatable. Identifiers are fresh in every run, whatever it
	// is, for servers keep what they saw.
	Seed uint64
}

// Check returns what is wrong with the plan, and completes its mix: names get their service,
// methods without a body the one that is built in. Run does it, too.
func (p *Plan) Check() error {
	for _, check := range []func() error{p.checkTarget, p.checkSchedule, p.checkBounds, p.checkWatch, p.checkMix} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) checkTarget() error {
	if !slices.Contains(Protocols(), p.Target.Protocol) {
		return fmt.Errorf("cannot use protocol %q: want one of %s", p.Target.Protocol, strings.Join(Protocols(), ", "))
	}
	if p.Target.Protocol == ProtocolThreads && p.Target.Token == "" {
		return errors.New("cannot use protocol threads without a token")
	}
	if p.Target.Token != "" && p.Target.greeting() == nil {
		return fmt.Errorf("cannot use a token with protocol %s: only %s, %s and %s know one", p.Target.Protocol, ProtocolToolhost, ProtocolThreads, ProtocolExacta)
	}
	_, _, _, err := p.Target.Place()
	return err
}

func (p *Plan) checkSchedule() error {
	s := p.Schedule
	good := func(rate float64) bool { return rate > 0 && rate <= MaxRate }
	switch {
	case s.Kind > Max:
		return fmt.Errorf("cannot use schedule %d: no such kind", s.Kind)
	case s.Kind == Constant && !good(s.To):
		return fmt.Errorf("cannot use rate %g: want above 0 and at most %d requests/s", s.To, MaxRate)
	case s.Kind == Ramp && s.From == 0 && s.To == 0:
		return errors.New("cannot use a ramp from 0 to 0: no request would be due")
	case s.Kind == Ramp && (s.From != 0 && !good(s.From) || s.To != 0 && !good(s.To)):
		return fmt.Errorf("cannot use a ramp from %g to %g: want 0 to %d requests/s", s.From, s.To, MaxRate)
	}
	return nil
}

func (p *Plan) checkBounds() error {
	switch {
	case p.Conns < 1 || p.Conns > maxConns:
		return fmt.Errorf("cannot use %d connections: want 1 to %d", p.Conns, maxConns)
	case p.Depth < 1 || p.Depth > maxDepth:
		return fmt.Errorf("cannot use depth %d: want 1 to %d", p.Depth, maxDepth)
	case p.Conns*p.Depth > maxInFlight:
		return fmt.Errorf("cannot use %d connections of depth %d: at most %d requests may be in flight", p.Conns, p.Depth, maxInFlight)
	case p.Count < 0:
		return fmt.Errorf("cannot use count %d: want 0 or more", p.Count)
	case p.Threads < 0 || p.Threads > p.Conns:
		return fmt.Errorf("cannot use %d threads: want 1 to %d, one for each connection", p.Threads, p.Conns)
	case p.Resend && p.Target.Protocol != ProtocolKernel:
		return fmt.Errorf("cannot send again with protocol %s: only %s shows that a request was not looked at", p.Target.Protocol, ProtocolKernel)
	case p.Threads > 0 && p.Target.Protocol != ProtocolThreads:
		return fmt.Errorf("cannot use threads with protocol %s: only %s has them", p.Target.Protocol, ProtocolThreads)
	case p.Duration <= 0:
		return fmt.Errorf("cannot use duration %s: it must be positive", p.Duration)
	case p.Warmup < 0:
		return fmt.Errorf("cannot use warm-up %s: it must not be negative", p.Warmup)
	case p.Duration > MaxDuration || p.Warmup > MaxDuration-p.Duration:
		return fmt.Errorf("cannot use warm-up %s and duration %s: together at most %s", p.Warmup, p.Duration, MaxDuration)
	case p.Timeout < time.Millisecond || p.Timeout > time.Duration(HighestLatency):
		return fmt.Errorf("cannot use timeout %s: want 1ms to %s", p.Timeout, time.Duration(HighestLatency))
	case p.Interval < time.Millisecond:
		return fmt.Errorf("cannot use interval %s: want at least 1ms", p.Interval)
	}
	return nil
}

// OnlyCount takes the bound of time off a plan that has a count: its Duration becomes the longest
// there is.
func (p *Plan) OnlyCount() { p.Duration = max(MaxDuration-p.Warmup, 1) }

// Timed reports whether Duration was meant to bound the plan, and not only its count.
func (p *Plan) Timed() bool {
	return p.Duration > 0 && (p.Count == 0 || p.Duration < MaxDuration-p.Warmup)
}

// checkMix completes the mix and makes every message of it once.
func (p *Plan) checkMix() error {
	mix := p.Mix
	if len(mix) == 0 {
		mix = DefaultMix(p.Target.Protocol)
	}
	if len(mix) > maxShares {
		return fmt.Errorf("cannot use %d methods: at most %d", len(mix), maxShares)
	}
	full := make([]Share, len(mix))
	seen := make(map[string]bool)
	for i, s := range mix {
		if s.Weight < 1 || s.Weight > maxWeight {
			return fmt.Errorf("cannot use weight %d of %s: want 1 to %d", s.Weight, s.Name, maxWeight)
		}
		var err error
		if full[i], err = complete(p.Target.Protocol, s); err != nil {
			return err
		}
		if _, err := compile(&p.Target, &full[i], "00000000"); err != nil {
			return err
		}
		if seen[full[i].Name] {
			return fmt.Errorf("cannot use %s twice: give it one weight", full[i].Name)
		}
		seen[full[i].Name] = true
	}
	p.Mix = full
	return nil
}

// maxWeight bounds the weight of a share, so that their sum is far from overflowing.
const maxWeight = 1_000_000

// complete returns a share with its full name and a body.
func complete(protocol string, s Share) (Share, error) {
	if s.Name == "" || len(s.Name) > maxName || strings.ContainsAny(s.Name, "\r\n\x00") {
		return s, fmt.Errorf("cannot use method %q: want a name of 1 to %d bytes", s.Name, maxName)
	}
	if protocol == ProtocolKernel && !strings.Contains(s.Name, ".") {
		s.Name = "kernel." + s.Name
	}
	if protocol == ProtocolKernel && slices.Contains(streams, s.Name) {
		return s, fmt.Errorf("cannot measure %s: it opens a stream", s.Name)
	}
	if s.Body == nil {
		body, ok := builtinBody(protocol, s.Name)
		if !ok {
			return s, fmt.Errorf("cannot call %s without a body: none is built in for it", s.Name)
		}
		s.Body = []byte(body)
	}
	if len(s.Body) > maxBodyBytes {
		return s, fmt.Errorf("cannot use the body of %s: it has more than %d bytes", s.Name, maxBodyBytes)
	}
	return s, nil
}

// streams are the methods whose replies have no end.
var streams = []string{"commbus.Subscribe", "commbus.RegisterCommandHandler", "commbus.RegisterQueryHandler"}

// maxName bounds names, in bytes.
const maxName = 256

// kernelBodies are the built-in bodies of ProtocolKernel. Methods that are missing need what only
// the user knows, or would take work away from the workers of the server.
var kernelBodies = map[string]string{
	"kernel.CreateProcess":    `{"pid":"` + createdPrefix + `{{run}}-{{seq}}","user_id":"bench-{{run}}-{{seq}}","schedule":false}`,
	"kernel.GetProcess":       `{"pid":"{{pid}}"}`,
	"kernel.CheckQuota":       `{"pid":"{{pid}}"}`,
	"kernel.RecordUsage":      `{"pid":"{{pid}}","tokens_in":1,"tokens_out":1}`,
	"kernel.CheckRateLimit":   `{"user_id":"bench-{{run}}-{{conn}}","record":false}`,
	"kernel.ListProcesses":    `{"limit":10}`,
	"kernel.GetProcessCounts": `{}`,
	"kernel.GetQuotaDefaults": `{}`,
	"kernel.GetSystemStatus":  `{}`,
	"engine.CheckBounds":      `{"envelope_id":"bench-{{uuid}}","raw_input":"hello","outputs":{},"current_stage":"start"}`,
	"commbus.Publish":         `{"event_type":"bench.event","payload":"{\"seq\":\"{{seq}}\"}","source":"trunkline bench"}`,
}

// createdPrefix begins the pids of kernel.CreateProcess's built-in body; a run terminates what it
// created with it.
const createdPrefix = "bench-new-"

// toolhostBodies are the built-in lines of ProtocolToolhost; any other tool is called without an
// input.
var toolhostBodies = map[string]string{
	"AID.HASH.DIGEST.v1": `{"aid":"AID.HASH.DIGEST.v1","inputs":{"text":"{{uuid}}"}}`,
	"AID.EMBED.TEXT.v1":  `{"aid":"AID.EMBED.TEXT.v1","inputs":{"text":"{{uuid}}","dim":64}}`,
	"AID.ASK_SUP.v1":     `{"aid":"AID.ASK_SUP.v1","inputs":{"q":"{{seq}}"}}`,
}

const smallEnvelope = `{"envelope_id":"bench-{{uuid}}","raw_input":"hello","outputs":{},"current_stage":"start","terminated":false}`

// builtins are what a protocol has when the user names no method, and the bodies of methods for
// which the user gave none. A worker's calls are mostly of its own processes, an agent asks its
// threads more often than it writes, and a project is controlled, and opened now and then for its
// events.
var builtins = map[string]struct {
	mix    []Share
	bodies map[string]string
}{
	ProtocolKernel: {
		[]Share{{Name: "kernel.GetProcess", Weight: 60}, {Name: "kernel.RecordUsage", Weight: 20}, {Name: "kernel.CheckQuota", Weight: 20}},
		kernelBodies,
	},
	ProtocolToolhost: {[]Share{{Name: "AID.NOOP.v1", Weight: 1}}, toolhostBodies},
	ProtocolThreads:  {[]Share{{Name: "read_messages", Weight: 80}, {Name: "post_message", Weight: 20}}, threadsBodies},
	ProtocolExacta: {
		[]Share{{Name: "Pause", Weight: 94}, {Name: "ValidatePlan", Weight: 5}, {Name: "OpenProject", Weight: 1}},
		exactaBodies,
	},
	ProtocolHTTP: {mix: []Share{{Name: "process", Weight: 1}}},
}

func builtinBody(protocol, name string) (body string, ok bool) {
	body, ok = builtins[protocol].bodies[name]
	switch {
	case protocol == ProtocolHTTP:
		return smallEnvelope, true
	case protocol == ProtocolToolhost && !ok:
		return `{"aid":` + string(jsonx.AppendString(nil, name)) + `}`, true
	}
	return body, ok
}

// DefaultMix is what is asked when the user names no method.
func DefaultMix(protocol string) []Share { return slices.Clone(builtins[protocol].mix) }
