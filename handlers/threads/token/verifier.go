package token

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Bounds of tokens.
const (
	// maxTokenBytes is the length of the longest token.
	maxTokenBytes = 8192
	// maxCached is how many verified tokens are remembered.
	maxCached = 65536
	// cachedFor is how long a verified token is remembered, at most until it expires.
	cachedFor = time.Minute
	// maxClockSkew is the largest Config.ClockSkew.
	maxClockSkew = 300 * time.Second
	// DefaultAudience is the audience of a Config that names none.
	DefaultAudience = "orkiva"
)

// Reasons that occur in several places.
const (
	malformed  = "malformed"
	unknownKey = "unknown_key"
)

// ErrNoKeySource means that a Config names no key source.
var ErrNoKeySource = errors.New("no key source: tokens cannot be verified")

// Refusal is why a token is not accepted: the answer is UNAUTHORIZED.
type Refusal struct {
	Reason string // of the table in threads §3.1; "malformed" for what is no token
	// Unavailable is set where the cause is the server's: it cannot get the keys.
	Unavailable bool
	// Retry is after which time the same token may be accepted; 0: never.
	Retry time.Duration
}

// Error returns a text with the reason. It allocates.
func (r *Refusal) Error() string { return "token refused: " + r.Reason }

func refuse(reason string) *Refusal { return &Refusal{Reason: reason} }

// ErrOutOfScope means that a token is right, and for another workspace than Config.WorkspaceID: the
// answer is OUT_OF_SCOPE_WORKSPACE.
var ErrOutOfScope = errors.New("the token is for another workspace")

// Config is how tokens are verified (threads §3.1).
type Config struct {
	// Exactly one of these names the keys.
	JWKSURL, JWKSFile, PublicKeyFile, HS256SecretFile string
	// Issuer is what iss has to be.
	Issuer string
	// Audience is what aud has to be or to contain; empty: DefaultAudience.
	Audience string
	// ClockSkew is by how much clocks may differ, at most maxClockSkew.
	ClockSkew time.Duration
	// MaxTokenTTL bounds the life of a token; 0: it is not bounded.
	MaxTokenTTL time.Duration
	// RevocationFile has what is revoked; empty: nothing is.
	RevocationFile string
	// WorkspaceID is the only workspace that is served; empty: all.
	WorkspaceID string
	// Logger gets a line when keys or revocations cannot be read again.
	Logger *slog.Logger
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Verifier verifies tokens. Its methods may be called from any goroutine.
type Verifier struct {
	cfg    Config
	client *http.Client
	ctx    context.Context // ended by Close
	stop   context.CancelFunc
	ended  sync.WaitGroup
	parser *jwt.Parser

	generation atomic.Uint64 // of keys and revocations
	mark       [sha256.Size]byte
	revoked    atomic.Pointer[revocations]

	mu    sync.Mutex
	keys  []key
	cache map[[sha256.Size]byte]cached

	// Of the key set over HTTP, by mu.
	read     time.Time     // when the request was sent that keys are from
	asked    time.Time     // when the last request was sent
	asking   int           // requests in flight
	failures int           // since keys were last read
	failed   string        // why the last one did, for the log
	outcome  chan struct{} // closed, and replaced, at the next outcome
}

type cached struct {
	claims *Claims
	until  time.Time
}

// New returns a Verifier. The key source and the file of revocations must be readable, but it does
// not wait for a key set over HTTP. ErrNoKeySource if cfg names no source. Close ends what it
// started.
func New(cfg Config) (*Verifier, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Audience = cmp.Or(cfg.Audience, DefaultAudience)
	if cfg.ClockSkew < 0 || cfg.ClockSkew > maxClockSkew {
		return nil, fmt.Errorf("cannot use a clock skew of %v: 0 to %v", cfg.ClockSkew, maxClockSkew)
	}
	ctx, stop := context.WithCancel(context.Background())
	v := &Verifier{cfg: cfg, client: newClient(), ctx: ctx, stop: stop, cache: map[[sha256.Size]byte]cached{}, outcome: make(chan struct{})}
	v.parser = jwt.NewParser(jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding())
	if err := v.open(); err != nil {
		stop()
		return nil, err
	}
	return v, nil
}

// open reads the key source and the revocations, and starts to follow them.
func (v *Verifier) open() error {
	sources := 0
	c := &v.cfg
	mark := fmt.Appendf(
		nil,
		"%q %d %d",
		[]string{
			c.JWKSURL,
			c.JWKSFile,
			c.PublicKeyFile,
			c.HS256SecretFile,
			c.Issuer,
			c.Audience,
			c.RevocationFile,
			c.WorkspaceID,
		},
		c.ClockSkew,
		c.MaxTokenTTL,
	)
	for _, s := range []struct {
		name  string
		parse func([]byte) ([]key, error)
	}{{v.cfg.JWKSFile, parseSet}, {v.cfg.PublicKeyFile, parsePublic}, {v.cfg.HS256SecretFile, parseSecret}} {
		if s.name == "" {
			continue
		}
		sources++
		text, err := readBounded(s.name)
		if err == nil {
			v.keys, err = s.parse(text)
			mark = append(mark, text...)
		}
		if err != nil {
			return fmt.Errorf("cannot use the keys of %s: %w", s.name, err)
		}
	}
	v.mark = sha256.Sum256(mark)
	if v.cfg.JWKSURL != "" {
		sources++
		if err := checkAddress(v.cfg.JWKSURL); err != nil {
			return err
		}
	}
	switch {
	case sources == 0:
		return ErrNoKeySource
	case sources > 1:
		return errors.New("cannot use several key sources: name one")
	}
	if name := v.cfg.RevocationFile; name != "" {
		stamp, _ := os.Stat(name)
		list, err := readRevocations(name)
		if err != nil {
			return fmt.Errorf("cannot read the revocations: %w", err)
		}
		v.revoked.Store(list)
		v.ended.Go(func() { v.followRevocations(stamp) })
	}
	if v.cfg.JWKSURL != "" {
		v.ask(false)
		v.ended.Go(v.followKeys)
	}
	return nil
}

// Close ends what follows keys and revocations.
func (v *Verifier) Close() {
	v.mu.Lock() // no request for the key set starts after this
	v.stop()
	v.mu.Unlock()
	v.ended.Wait()
	v.client.CloseIdleConnections()
}

// Generation returns a number that changes with the keys and the revocations: claims of an earlier
// one have to be verified again. It does not allocate.
func (v *Verifier) Generation() uint64 { return v.generation.Load() }

// Verify returns the claims of a token, which all its checks have passed. The error is a *Refusal
// or ErrOutOfScope. It may wait for the key set if the key of the token is not known.
func (v *Verifier) Verify(token string) (*Claims, error) { return v.verify(token, true) }

// VerifyKnown is Verify by the keys that are known: it never waits for a key set.
func (v *Verifier) VerifyKnown(token string) (*Claims, error) { return v.verify(token, false) }

func (v *Verifier) verify(token string, fetch bool) (*Claims, error) {
	switch {
	case len(token) == 0:
		return nil, refuse(malformed)
	case len(token) > maxTokenBytes:
		return nil, refuse("too_large")
	}
	now := v.cfg.Now()
	sum, generation := sha256.Sum256([]byte(token)), v.generation.Load()
	v.mu.Lock()
	hit, ok := v.cache[sum]
	v.mu.Unlock()
	if ok && now.Before(hit.until) {
		return hit.claims, nil
	}
	c, err := v.check(token, now, fetch)
	if err != nil {
		return nil, err
	}
	until := now.Add(cachedFor)
	if left := c.Expires + v.cfg.ClockSkew.Seconds() - unix(now); left < cachedFor.Seconds() {
		until = now.Add(time.Duration(left * float64(time.Second)))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if generation == v.generation.Load() { // else the check may have been by what is no longer so
		v.makeRoom(now)
		v.cache[sum] = cached{c, until}
	}
	return c, nil
}

// makeRoom bounds the cache: the expired go first, then any. The caller holds v.mu.
func (v *Verifier) makeRoom(now time.Time) {
	if len(v.cache) < maxCached {
		return
	}
	for sum, e := range v.cache {
		if !now.Before(e.until) {
			delete(v.cache, sum)
		}
	}
	for sum := range v.cache {
		if len(v.cache) <= maxCached*7/8 {
			return
		}
		delete(v.cache, sum)
	}
}

// rawClaims keeps the payload of a token as it is.
type rawClaims struct {
	jwt.MapClaims // nil: the interface of the library asks for its methods
	text          []byte
}

// UnmarshalJSON keeps a copy of the text.
func (r *rawClaims) UnmarshalJSON(text []byte) error {
	r.text = append([]byte(nil), text...)
	return nil
}

// check does all checks of a token, in the order of threads §3.1.
func (v *Verifier) check(token string, now time.Time, fetch bool) (*Claims, error) {
	var raw rawClaims
	t, parts, err := v.parser.ParseUnverified(token, &raw)
	if t == nil || t.Method == nil || t.Method.Alg() == "none" {
		if errors.Is(err, jwt.ErrTokenUnverifiable) || err == nil {
			return nil, refuse("bad_algorithm")
		}
		return nil, refuse(malformed)
	}
	if err != nil {
		return nil, refuse(malformed)
	}
	if !v.allows(t.Method) {
		return nil, refuse("bad_algorithm")
	}
	_, critical := t.Header["crit"]
	_, unencoded := t.Header["b64"]
	typ, typed := t.Header["typ"]
	if critical || unencoded || typed && !isTokenType(typ) {
		return nil, refuse("bad_header")
	}
	k, err := v.keyFor(t, now, fetch)
	if err != nil {
		return nil, err
	}
	signature, err := v.parser.DecodeSegment(parts[2])
	if err != nil {
		return nil, refuse(malformed)
	}
	if t.Method.Verify(token[:len(parts[0])+1+len(parts[1])], signature, k) != nil {
		return nil, refuse("bad_signature")
	}
	c, err := v.cfg.claimsOf(raw.text, unix(now))
	switch {
	case err != nil:
		return nil, err
	case v.revoked.Load().has(c):
		return nil, refuse("revoked")
	case v.cfg.WorkspaceID != "" && c.Workspace != v.cfg.WorkspaceID:
		return nil, ErrOutOfScope
	}
	return c, nil
}

// isTokenType reports whether typ is a media type of a token (RFC 7515 §4.1.9, RFC 9068 §4).
func isTokenType(typ any) bool {
	text, _ := typ.(string)
	text = strings.TrimPrefix(strings.ToLower(text), "application/")
	return text == "jwt" || text == "at+jwt"
}

// allows reports whether the key source may have keys for the method.
func (v *Verifier) allows(m jwt.SigningMethod) bool {
	_, symmetric := m.(*jwt.SigningMethodHMAC)
	return symmetric == (v.cfg.HS256SecretFile != "")
}

// keyFor returns the key that has to have signed t.
func (v *Verifier) keyFor(t *jwt.Token, now time.Time, fetch bool) (any, error) {
	id, named := "", false
	if v.cfg.JWKSURL != "" || v.cfg.JWKSFile != "" {
		var kid any
		if kid, named = t.Header["kid"]; named {
			var ok bool
			if id, ok = kid.(string); !ok {
				return nil, refuse("bad_header")
			}
		}
	}
	k, refusal := v.choose(t.Method, id, named, now)
	if refusal != nil && refusal.Reason == unknownKey && v.cfg.JWKSURL != "" && fetch {
		if outcome := v.ask(false); outcome != nil {
			<-outcome
		}
		k, refusal = v.choose(t.Method, id, named, v.cfg.Now())
	}
	if refusal != nil {
		return nil, refusal
	}
	return k.public, nil
}

// choose picks the key of a token among those that are known.
func (v *Verifier) choose(m jwt.SigningMethod, id string, named bool, now time.Time) (*key, *Refusal) {
	v.mu.Lock()
	v.lapse(now)
	keys, failing, next := v.keys, v.failures > 0, v.asked.Add(keySetPause).Sub(now)
	v.mu.Unlock()
	if len(keys) == 0 {
		return nil, &Refusal{Reason: unknownKey, Unavailable: true, Retry: keySetRetry}
	}
	named = named && slices.ContainsFunc(keys, func(k key) bool { return k.id != "" })
	var fitting, same []*key
	for i := range keys {
		k := &keys[i]
		if named && k.id != id {
			continue
		}
		if same = append(same, k); k.fits(m) {
			fitting = append(fitting, k)
		}
	}
	switch {
	case len(fitting) == 1:
		return fitting[0], nil
	case len(same) == 0 && failing:
		return nil, &Refusal{Reason: unknownKey, Unavailable: true, Retry: keySetRetry}
	case len(same) == 0 && v.cfg.JWKSURL != "":
		return nil, &Refusal{Reason: unknownKey, Retry: max(next, keySetRetry)}
	case len(same) == 0 || len(fitting) > 1:
		return nil, refuse(unknownKey)
	}
	return nil, refuse("bad_algorithm")
}

func (v *Verifier) log(message string, err error) {
	if v.cfg.Logger != nil {
		v.cfg.Logger.Warn(message, "err", err)
	}
}

// unix returns t in seconds since 1970.
func unix(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
