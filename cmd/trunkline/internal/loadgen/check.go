package loadgen

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Check returns what is wrong with the plan, and completes its mix: names get their service,
// methods without a body the one that is built in. Run does it, too.
func (p *Plan) Check() error {
	for _, check := range []func() error{p.checkTarget, p.checkSchedule, p.checkSizes, p.checkTimes, p.checkMix} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) checkTarget() error {
	switch p.Target.Protocol {
	case ProtocolKernel, ProtocolToolhost, ProtocolHTTP:
	default:
		return fmt.Errorf("cannot use protocol %q: want %s, %s or %s", p.Target.Protocol, ProtocolKernel, ProtocolToolhost, ProtocolHTTP)
	}
	if p.Target.Token != "" && p.Target.Protocol != ProtocolToolhost {
		return fmt.Errorf("cannot use a token with protocol %s: only %s knows one", p.Target.Protocol, ProtocolToolhost)
	}
	_, err := p.Target.place()
	return err
}

func (p *Plan) checkSchedule() error {
	s := p.Schedule
	switch s.Kind {
	case Max:
		return nil
	case Constant:
		return checkRate(s.To, "rate")
	case Ramp:
	default:
		return fmt.Errorf("cannot use schedule %d: no such kind", s.Kind)
	}
	for _, rate := range [...]float64{s.From, s.To} {
		if rate == 0 {
			continue
		}
		if err := checkRate(rate, "end of a ramp"); err != nil {
			return err
		}
	}
	if s.From == 0 && s.To == 0 {
		return fmt.Errorf("cannot use a ramp from 0 to 0: no request would be due")
	}
	return nil
}

func checkRate(rate float64, what string) error {
	if !(rate > 0 && rate <= MaxRate) || math.IsInf(rate, 0) {
		return fmt.Errorf("cannot use %s %g: want above 0 and at most %d requests/s", what, rate, MaxRate)
	}
	return nil
}

func (p *Plan) checkSizes() error {
	switch {
	case p.Conns < 1 || p.Conns > maxConns:
		return fmt.Errorf("cannot use %d connections: want 1 to %d", p.Conns, maxConns)
	case p.Depth < 1 || p.Depth > maxDepth:
		return fmt.Errorf("cannot use depth %d: want 1 to %d", p.Depth, maxDepth)
	case p.Conns*p.Depth > maxInFlight:
		return fmt.Errorf("cannot use %d connections of depth %d: at most %d requests may be in flight", p.Conns, p.Depth, maxInFlight)
	case p.Count < 0:
		return fmt.Errorf("cannot use count %d: want 0 or more", p.Count)
	}
	return nil
}

func (p *Plan) checkTimes() error {
	switch {
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
	case p.Duration > p.longest():
		return fmt.Errorf("cannot use interval %s: the run would have more than %d", p.Interval, maxIntervals)
	}
	return nil
}

// longest is the greatest Duration that the limits allow beside Warmup and Interval.
func (p *Plan) longest() time.Duration {
	most := MaxDuration
	if p.Interval < MaxDuration/maxIntervals {
		most = maxIntervals * p.Interval
	}
	return most - p.Warmup
}

// OnlyCount takes the bound of time off a plan that has a count: its Duration becomes the longest
// there is.
func (p *Plan) OnlyCount() { p.Duration = max(p.longest(), 1) }

// Timed reports whether Duration was meant to bound the plan, and not only its count.
func (p *Plan) Timed() bool { return p.Duration > 0 && (p.Count == 0 || p.Duration < p.longest()) }

// checkMix completes the mix and makes every message of it once.
func (p *Plan) checkMix() error {
	mix := p.Mix
	if len(mix) == 0 {
		mix = DefaultMix(p.Target.Protocol)
	}
	if len(mix) > MaxShares {
		return fmt.Errorf("cannot use %d methods: at most %d", len(mix), MaxShares)
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
		if _, err := compile(&p.Target, &full[i], identity(0)); err != nil {
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
	if protocol == ProtocolKernel && opensStream(s.Name) {
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

// maxName bounds names, in bytes.
const maxName = 256
