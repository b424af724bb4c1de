package console

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of logins.
const (
	cookieName  = "trunkline_console" // what the names of cookies begin with
	maxSessions = 64                  // logins at a time; one more ends the one that was idle longest
	sessionAge  = 12 * time.Hour      // since the login
	sessionIdle = time.Hour           // since the last request
	formAge     = time.Hour           // of the login form

	// A peer address may fail so often at once, and once more in each pause. Addresses beyond
	// maxPeers share one count.
	failuresAtOnce = 10
	failurePause   = 6 * time.Second
	maxPeers       = 1024
)

// role is what a visitor may do.
type role uint8

const (
	stranger role = iota
	viewer
	operator
)

// String returns the name that pages and the log show.
func (r role) String() string { return [...]string{"none", "viewer", "operator"}[r] }

// session is a login.
type session struct {
	role role
	// name identifies the session in the log; nothing can be done with it.
	name string
	// secret is in the forms of the session.
	secret string
	since  time.Time
	seen   time.Time // guarded by auth.mu
	// going ends with the session, by end.
	going context.Context
	end   context.CancelFunc
}

// visitor is who sent a request.
type visitor struct {
	role    role
	session *session // nil for a token, and where no login is needed
	// going ends when the role may be another: with the session, or as other tokens are in force.
	going context.Context
}

// auth decides who may do what. Any goroutine may call its methods.
type auth struct {
	key [32]byte // of the secrets in login forms
	now func() time.Time

	mu       sync.Mutex
	tokens   tokens
	sessions map[[sha256.Size]byte]*session // by the digest of the cookie
	peers    map[netip.Addr]*rate.Limiter   // a network of IPv6, which one person may have, is one peer
	rest     *rate.Limiter
}

// tokens are those in force. They are not changed, but replaced.
type tokens struct {
	digests [operator + 1][sha256.Size]byte // by role
	set     [operator + 1]bool
	// going ends when others are in force, by end.
	going context.Context
	end   context.CancelFunc
}

func newAuth(c *Config) *auth {
	a := &auth{now: c.now, sessions: map[[sha256.Size]byte]*session{}, peers: map[netip.Addr]*rate.Limiter{}, rest: newFailures()}
	a.tokens.end = func() {}
	a.replace(c.ViewerToken, c.OperatorToken)
	_, _ = rand.Read(a.key[:]) // it does not fail
	return a
}

// replace puts tokens in force, "" for none, and reports which of them are others than before.
// Logins by those end, and so does what was shown for a token, or without one.
func (a *auth) replace(viewerToken, operatorToken string) (changed [operator + 1]bool) {
	var next tokens
	for r, token := range map[role]string{viewer: viewerToken, operator: operatorToken} {
		next.digests[r], next.set[r] = sha256.Sum256([]byte(token)), token != ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for r := range next.digests {
		changed[r] = next.digests[r] != a.tokens.digests[r]
	}
	if changed == [operator + 1]bool{} {
		return changed
	}
	a.tokens.end()
	next.going, next.end = context.WithCancel(context.Background())
	a.tokens = next
	for id, s := range a.sessions {
		if changed[s.role] {
			a.forget(id)
		}
	}
	return changed
}

// inForce returns the tokens.
func (a *auth) inForce() tokens {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tokens
}

// asks reports whether a token is needed.
func (a *auth) asks() bool {
	t := a.inForce()
	return t.asks()
}

func (t *tokens) asks() bool { return t.set[viewer] || t.set[operator] }

// roleOf returns the role of a token. Its time depends on the length of the token alone.
func (t *tokens) roleOf(token string) (found role) {
	sum := sha256.Sum256([]byte(token))
	for r := viewer; r <= operator; r++ {
		if subtle.ConstantTimeCompare(sum[:], t.digests[r][:]) == 1 && t.set[r] {
			found = r
		}
	}
	return found
}

// try returns the role of a token that a peer shows, and counts a failure. wait is not 0 for a peer
// with too many of them: its token was not looked at.
func (a *auth) try(t *tokens, remote, token string) (r role, wait time.Duration) {
	now := a.now()
	attempt := a.failures(remote).ReserveN(now, 1)
	if wait = attempt.DelayFrom(now); wait > 0 {
		attempt.CancelAt(now)
		return stranger, wait
	}
	if r = t.roleOf(token); r != stranger {
		attempt.CancelAt(now)
	}
	return r, 0
}

func newFailures() *rate.Limiter { return rate.NewLimiter(rate.Every(failurePause), failuresAtOnce) }

// failures returns the count of a peer.
func (a *auth) failures(remote string) *rate.Limiter {
	peer, _ := netip.ParseAddrPort(remote) // the zero address stands for what is none
	addr := peer.Addr().Unmap().WithZone("")
	if addr.Is6() {
		network, _ := addr.Prefix(64) // it has that many bits
		addr = network.Addr()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if f := a.peers[addr]; f != nil {
		return f
	}
	if len(a.peers) >= maxPeers {
		now := a.now()
		for addr, f := range a.peers {
			if f.TokensAt(now) >= failuresAtOnce {
				delete(a.peers, addr)
			}
		}
	}
	if len(a.peers) >= maxPeers {
		return a.rest
	}
	f := newFailures()
	a.peers[addr] = f
	return f
}

// who returns the visitor behind a request. wait is not 0 if it may not try now. A cookie counts
// only for pages of this listener: for browsers, all ports of a host are one site. Forms are
// checked where they are read.
func (a *auth) who(r *http.Request, own *http.CrossOriginProtection) (v visitor, wait time.Duration) {
	t := a.inForce()
	if !t.asks() {
		return visitor{role: viewer, going: t.going}, 0
	}
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "bearer") {
		v.going = t.going
		v.role, wait = a.try(&t, r.RemoteAddr, token)
		return v, wait
	}
	if r.Method != http.MethodPost && r.Header.Get("Origin") != "" &&
		own.Check(&http.Request{Method: http.MethodPost, Header: r.Header, Host: r.Host, URL: r.URL}) != nil {
		return v, 0
	}
	if s := a.session(r); s != nil {
		return visitor{s.role, s, s.going}, 0
	}
	return v, 0
}

// cookieOf returns the name of the cookie: browsers show a cookie to all ports of a host, and each
// may be another server.
func cookieOf(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return cookieName
	}
	return cookieName + "_" + port
}

// session returns the login that the cookie of a request names, nil if there is none.
func (a *auth) session(r *http.Request) *session {
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	var id [sha256.Size]byte
	var s *session
	for _, cookie := range r.CookiesNamed(cookieOf(r)) { // others may be of an earlier server
		id = sha256.Sum256([]byte(cookie.Value))
		if s = a.sessions[id]; s != nil {
			break
		}
	}
	if s == nil {
		return nil
	}
	if now.Sub(s.since) >= sessionAge || now.Sub(s.seen) >= sessionIdle {
		a.forget(id)
		return nil
	}
	s.seen = now
	return s
}

// begin makes a session by a token of t and returns the value of its cookie. ok is false if others
// are in force meanwhile.
func (a *auth) begin(t *tokens, r role) (value string, s *session, ok bool) {
	value = rand.Text()
	id, now := sha256.Sum256([]byte(value)), a.now()
	s = &session{role: r, name: hex.EncodeToString(id[:4]), secret: rand.Text(), since: now, seen: now}
	s.going, s.end = context.WithCancel(context.Background())
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.going.Err() != nil {
		return "", nil, false
	}
	if len(a.sessions) >= maxSessions {
		var oldest [sha256.Size]byte
		for other, o := range a.sessions {
			if first := a.sessions[oldest]; first == nil || o.seen.Before(first.seen) {
				oldest = other
			}
		}
		a.forget(oldest)
	}
	a.sessions[id] = s
	return value, s, true
}

// end ends a session.
func (a *auth) end(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, other := range a.sessions {
		if other == s {
			a.forget(id)
		}
	}
}

// forget ends the session of an id. Caller holds mu.
func (a *auth) forget(id [sha256.Size]byte) {
	a.sessions[id].end()
	delete(a.sessions, id)
}

// formSecret returns the secret of a login form of the present time, or of the time before.
func (a *auth) formSecret(before int64) string {
	mac := hmac.New(sha256.New, a.key[:])
	fmt.Fprint(mac, a.now().UnixNano()/int64(formAge)-before)
	return hex.EncodeToString(mac.Sum(nil))
}

// formValid reports whether a login form was made here not long ago.
func (a *auth) formValid(secret string) bool {
	return same(secret, a.formSecret(0)) || same(secret, a.formSecret(1))
}

// same compares secrets of the same length.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
