package ipc

import (
	"sync/atomic"

	"trunkline/codec/wire"
	"trunkline/engine/bus"
	"trunkline/engine/kernel"
	"trunkline/engine/link"
	"trunkline/engine/orchestration"
)

// callCounters count the answers of one method by code.
type callCounters [wire.NumCodes]atomic.Int64

// tally gathers equal counts of a turn: a pipelined burst costs one shared addition.
type tally struct {
	row  int
	code wire.Code
	n    int64
}

func (c *tally) count(calls []callCounters, row int, code wire.Code) {
	if c.n > 0 && (row != c.row || code != c.code) {
		c.flush(calls)
	}
	c.row, c.code = row, code
	c.n++
}

func (c *tally) flush(calls []callCounters) {
	if c.n > 0 {
		calls[c.row][c.code].Add(c.n)
		c.n = 0
	}
}

// CallCount is how often a method was answered with a code. Service and Method are empty for frames
// that reached no method.
type CallCount struct {
	Service, Method string
	Code            wire.Code
	Count           int64
}

// Stats is a reading of an endpoint's counters.
type Stats struct {
	Calls  []CallCount // those that are not zero, in the order of the method table
	Counts kernel.Counts
	Bus    bus.Stats
	Orch   orchestration.Stats
}

// Stats reads the counters. It takes the locks of the tables it counts, one at a time.
func (s *Service) Stats() Stats {
	st := Stats{Orch: s.orch.Stats()}
	st.Counts, st.Bus = s.counts(s.now(link.Now()))
	for row := range s.calls {
		var c CallCount
		if row < len(methods) {
			c.Service, c.Method = methods[row].service, methods[row].name
		}
		for code := range s.calls[row] {
			c.Code, c.Count = wire.Code(code), s.calls[row][code].Load()
			if c.Count > 0 {
				st.Calls = append(st.Calls, c)
			}
		}
	}
	return st
}
