package ops

import (
	"slices"
	"sync"
)

// Readiness is the list of reasons why new work is not welcome; ready means the list is empty. Reasons come from the program,
// never from input, so the list is short. Its methods may be called from any goroutine; the zero value is ready.
type Readiness struct {
	mu      sync.Mutex
	reasons []string
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

// Reasons returns a copy of the list in the order the reasons came up; empty, never nil, when ready.
func (r *Readiness) Reasons() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.reasons...)
}
