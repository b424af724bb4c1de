package soak

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/bench/internal/load"
)

// refusals counts ERROR frames. The workers of a load call it concurrently.
type refusals struct {
	nothingRunnable atomic.Uint64 // GetNextRunnable on an empty queue: a normal answer (kernel-ipc §4.4)
	errors          atomic.Uint64

	mu    sync.Mutex
	codes map[string]uint64 // by code: a closed set
	first string            // the first error's text
}

// evaluate never ends a connection: a soak counts everything that goes wrong.
func (r *refusals) evaluate(tag uint8, payload []byte) error {
	f, err := load.ParseFailure(payload)
	if err != nil {
		return err
	}
	if tag == tagNextRunnable && f.Code == "NOT_FOUND" {
		r.nothingRunnable.Add(1)
		return nil
	}
	r.errors.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.codes == nil {
		r.codes, r.first = map[string]uint64{}, f.Error()
	}
	r.codes[f.Code]++
	return nil
}

// String names the codes and the first error.
func (r *refusals) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%v, first: %s", r.codes, r.first)
}

// reading is the server's memory at one moment of the load.
type reading struct {
	at  time.Duration
	rss int64
}

// growth returns by which part of its value at settleTime the memory grew at most; ok is false if
// the load was too short.
func growth(readings []reading) (part float64, ok bool) {
	var base, highest int64
	for _, r := range readings {
		switch {
		case r.at < settleTime:
		case base == 0:
			base, highest = r.rss, r.rss
		default:
			highest, ok = max(highest, r.rss), true
		}
	}
	if !ok || base == 0 {
		return 0, false
	}
	return float64(highest-base) / float64(base), true
}

// outcome is everything that a soak is evaluated by.
type outcome struct {
	dropped  uint64
	refused  refusals
	loadErr  error
	readings []reading
}

// faults lists what is wrong; nothing means that the soak passed.
func (o *outcome) faults() (out []string) {
	if n := o.refused.errors.Load(); n > 0 {
		out = append(out, fmt.Sprintf("%d error replies: %v", n, &o.refused))
	}
	if o.dropped > 0 {
		out = append(out, fmt.Sprintf("%d requests without a reply", o.dropped))
	}
	if o.loadErr != nil {
		out = append(out, fmt.Sprintf("the load failed: %v", o.loadErr))
	}
	if part, ok := growth(o.readings); ok && part > maxGrowth {
		out = append(out, fmt.Sprintf("memory grew by %.1f %% after the first %v, more than %.1f %%", 100*part, settleTime, 100*maxGrowth))
	}
	return out
}
