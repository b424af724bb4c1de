package soak

import (
	"sync"
	"sync/atomic"
	"time"

	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

// refusals counts ERROR frames. The workers of a load call it concurrently.
type refusals struct {
	nothingRunnable atomic.Uint64 // GetNextRunnable on an empty queue: a normal answer (kernel-ipc §4.4)
	errors          atomic.Uint64

	once  sync.Once
	first string // the first error's text
}

// count never ends a connection: a soak counts everything that goes wrong.
func (r *refusals) count(tag uint8, payload []byte) error {
	f, err := load.ParseFailure(payload)
	if err != nil {
		return err
	}
	if tag == tagNextRunnable && f.Code == "NOT_FOUND" {
		r.nothingRunnable.Add(1)
		return nil
	}
	r.errors.Add(1)
	r.once.Do(func() { r.first = f.Error() })
	return nil
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

// evaluate adds what is wrong to the report; nothing means that the soak passed.
func evaluate(r *part.Report, refused *refusals, dropped uint64, loadErr error, readings []reading) {
	r.Checked = true
	if n := refused.errors.Load(); n > 0 {
		r.Fault("%d error replies, first: %s", n, refused.first)
	}
	if dropped > 0 {
		r.Fault("%d requests without a reply", dropped)
	}
	if loadErr != nil {
		r.Fault("the load failed: %v", loadErr)
	}
	if part, ok := growth(readings); !ok {
		r.Note("Growth of memory is not evaluated: fewer than two readings after %v.", settleTime)
	} else if part > maxGrowth {
		r.Fault("memory grew by %.1f %% after the first %v, more than %.1f %%", 100*part, settleTime, 100*maxGrowth)
	}
}
