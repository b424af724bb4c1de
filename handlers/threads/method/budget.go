package method

import "sync/atomic"

// Bounds of the memory of requests.
const (
	// defaultBudget is the size of a Budget that names none.
	defaultBudget = 256 << 20
	// freeBytes are those of small requests, which do not count: connections bound them.
	freeBytes = 64 << 10
)

// Budget bounds the memory of the bodies and answers of all requests together. Any goroutine may
// call its methods, which do not allocate.
type Budget struct {
	most int64
	used atomic.Int64
}

// NewBudget returns a budget of so many bytes; 0: the default.
func NewBudget(bytes int) *Budget {
	if bytes == 0 {
		bytes = defaultBudget
	}
	return &Budget{most: int64(bytes)}
}

// Fit reports whether a request may have so many bytes in memory, and then makes them its part,
// which held is.
func (b *Budget) Fit(held *int, bytes int) bool {
	if bytes <= freeBytes {
		return true
	}
	more := int64(bytes - *held)
	if b.used.Add(more) > b.most {
		b.used.Add(-more)
		return false
	}
	*held = bytes
	return true
}

// Free gives the part of a request back.
func (b *Budget) Free(held *int) {
	b.used.Add(-int64(*held))
	*held = 0
}

// Crowded is the refusal of a request for whose bytes there is no room.
var Crowded = &Fault{Condition: Unavailable, Message: "the server holds too much for other requests"}
