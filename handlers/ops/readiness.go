package ops

import (
	"slices"
	"sync"
)

// Readiness is the list of reasons why new work is not welcome; ready means an empty list. Reasons
// come from the program, never from input, so the list is short. Any goroutine may call its
// methods. The zero value is ready.
type Readiness struct {
	mu         sync.Mutex
	reasons    []string
	conditions []condition
}

// condition is a reason that comes and goes by itself.
type condition struct {
	reason string
	holds  func() bool
}

// Hold adds a reason; holding the same reason twice is holding it once.
func (r *Readiness) Hold(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.reasons, reason) {
		r.reasons = append(r.reasons, reason)
	}
}

// Release removes a reason.
func (r *Readiness) Release(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reasons = slices.DeleteFunc(r.reasons, func(s string) bool { return s == reason })
}

// When adds a reason that counts while holds returns true. Each reading of the list calls holds,
// which must return promptly.
func (r *Readiness) When(reason string, holds func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conditions = append(r.conditions, condition{reason, holds})
}

// Reasons returns a copy of the list, those of Hold first, in their order. It is never nil.
func (r *Readiness) Reasons() []string {
	r.mu.Lock()
	reasons, conditions := append([]string{}, r.reasons...), r.conditions
	r.mu.Unlock()
	for _, c := range conditions {
		if c.holds() {
			reasons = append(reasons, c.reason)
		}
	}
	return reasons
}
