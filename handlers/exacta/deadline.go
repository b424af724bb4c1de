package exacta

import (
	"runtime/debug"
	"time"

	"trunkline/engine/exacta/fault"
)

const (
	fileWithin = 30 * time.Second // what only reads files (exacta §3.7, RES-003)
	maxHung    = 64               // goroutines that wait for a disk that does not answer
)

// located is a root that was found.
type located struct {
	dir     string
	markers []string
}

// within runs f, which changes nothing, and gives up after the limit: a disk that does not answer
// must not keep other projects from being opened. What f returns later goes to drop. A work that
// writes has no such limit: it would be answered as failed, and happen afterwards.
func within[T any](s *Server, f func() (T, *fault.Fault), drop func(T)) (out T, err *fault.Fault) {
	if s.hung.Load() >= maxHung {
		return out, fault.New("RES-004", "reads that do not end: 64")
	}
	type result struct {
		out T
		err *fault.Fault
	}
	ended, left := make(chan result), make(chan struct{})
	go func() {
		var r result
		func() {
			defer func() {
				if v := recover(); v != nil {
					s.cfg.Logger.Error("cannot read a project", "panic", v, "stack", string(debug.Stack()))
					r.err = fault.New("ST-002", "an internal failure")
				}
			}()
			r.out, r.err = f()
		}()
		select {
		case ended <- r:
		case <-left:
			s.hung.Add(-1)
			if r.err == nil {
				drop(r.out)
			}
		}
	}()
	select {
	case r := <-ended:
		return r.out, r.err
	case <-s.after(fileWithin):
		s.hung.Add(1)
		close(left)
		return out, fault.New("RES-003", "the disk does not answer")
	}
}
