package toolhost

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"sync"
)

// Limits of leases (toolhost §6), times in milliseconds.
const (
	maxLeases        = 4096
	minLeaseTTL      = 1000
	maxLeaseTTL      = 300_000
	defaultLeaseTTL  = 10_000
	keptExpired      = 300_000 // an expired token is known for so long, for its reason
	anyTool          = "*"
	nsPerMs          = int64(1_000_000)
	leasePrefix      = "lease_"
	leaseRandomBytes = 16
)

// lease is one permission to run one tool once (toolhost §4.4).
type lease struct {
	tool     string
	tier     int
	expiry   int64 // ns of the monotonic clock: valid while now <= expiry
	consumed bool
}

func (t *lease) usable(now int64) bool { return !t.consumed && now <= t.expiry }

func (t *lease) gone(now int64) bool { return now > t.expiry+keptExpired*nsPerMs }

// leases are the tokens of a server, usable on any connection.
type leases struct {
	mu                         sync.Mutex
	tokens                     map[string]*lease
	issued, consumed, rejected int64
	// room is how many tokens can be issued before the live ones must be counted again.
	room int64
}

type leaseCounts struct{ active, issued, consumed, rejected int64 }

// issue makes a token; ok is false when there are too many.
func (l *leases) issue(now int64, tool string, tier int, ttlMs int64) (token string, ok bool) {
	var random [leaseRandomBytes]byte
	_, _ = rand.Read(random[:]) // it never fails: the runtime ends the process first
	token = leasePrefix + hex.EncodeToString(random[:])
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.room == 0 {
		l.drop(now)
		l.room = maxLeases - l.live(now)
	}
	if l.room == 0 {
		return "", false
	}
	if l.tokens == nil {
		l.tokens = make(map[string]*lease)
	}
	l.tokens[token] = &lease{tool: tool, tier: tier, expiry: now + ttlMs*nsPerMs}
	l.issued++
	l.room--
	return token, true
}

func (l *leases) live(now int64) (n int64) {
	for _, t := range l.tokens {
		if t.usable(now) {
			n++
		}
	}
	return n
}

// drop forgets what has been expired for long, and of too many what expires first. It is called
// once for maxLeases tokens: at most three times as many are there, and 8,192 keep their reasons.
func (l *leases) drop(now int64) {
	var dead []string
	for id, t := range l.tokens {
		switch {
		case t.gone(now):
			delete(l.tokens, id)
		case !t.usable(now):
			dead = append(dead, id)
		}
	}
	excess := len(l.tokens) - 2*maxLeases
	if excess <= 0 {
		return
	}
	slices.SortFunc(dead, func(a, b string) int { return cmp.Compare(l.tokens[a].expiry, l.tokens[b].expiry) })
	for _, id := range dead[:min(excess, len(dead))] {
		delete(l.tokens, id)
	}
}

// gc drops expired and consumed tokens and counts.
func (l *leases) gc(now int64) leaseCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.tokens, func(_ string, t *lease) bool { return !t.usable(now) })
	return leaseCounts{int64(len(l.tokens)), l.issued, l.consumed, l.rejected}
}

func (l *leases) active(now int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live(now)
}

// rejection is why a token is refused; the zero value means that it is not.
type rejection struct {
	fixed        string
	lease, asked string // a tool mismatch
	have, need   int    // a tier mismatch
}

func (r *rejection) refuses() bool { return r.fixed != "" }

const (
	toolMismatch = "tool mismatch: expected="
	tierMismatch = "tier mismatch: lease="
)

// append appends the reason (toolhost §4.4). Its content was checked when the token was issued: it
// needs no escape but the AIDs', which jsonx gives.
func (r *rejection) append(dst []byte) []byte {
	switch r.fixed {
	case toolMismatch:
		return append(append(append(append(dst, toolMismatch...), r.lease...), " got="...), r.asked...)
	case tierMismatch:
		dst = strconv.AppendInt(append(dst, tierMismatch...), int64(r.have), 10)
		return strconv.AppendInt(append(dst, " tool="...), int64(r.need), 10)
	}
	return append(dst, r.fixed...)
}

// use verifies a token for a tool and, with consume, uses it up (§4.4). It does not allocate.
func (l *leases) use(now int64, token []byte, e *Entry, consume bool) (r rejection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tokens[string(token)]
	switch {
	case t == nil || t.gone(now):
		r.fixed = "not found"
	case now > t.expiry:
		r.fixed = "expired"
	case t.consumed:
		r.fixed = "already consumed"
	case t.tool != anyTool && t.tool != e.AID:
		r = rejection{fixed: toolMismatch, lease: t.tool, asked: e.AID}
	case t.tier < e.Tier:
		r = rejection{fixed: tierMismatch, have: t.tier, need: e.Tier}
	}
	switch {
	case r.refuses():
		l.rejected++
	case consume:
		t.consumed = true
		l.consumed++
	}
	return r
}

// fingerprint is what events contain of a token: 8 hex digits of its hash.
func fingerprint(token []byte) string {
	sum := sha256.Sum256(token)
	return hex.EncodeToString(sum[:4])
}
