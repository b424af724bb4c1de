package token

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"trunkline/engine/smallfile"
)

// How a Verifier follows what may change beside it.
const (
	// keySetTimeout bounds one request for a key set.
	keySetTimeout = 5 * time.Second
	// keySetRefresh is how often a key set is asked for.
	keySetRefresh = 10 * time.Minute
	// keySetPause is how soon after a success, for an unknown key, it is requested again.
	keySetPause = 30 * time.Second
	// keySetRetry is how soon after a failure it is requested again if a token needs it; without
	// that, the pause doubles from there to keySetPause.
	keySetRetry = time.Second
	// keySetKept is how long the keys of the last answer are used while requests fail.
	keySetKept = time.Hour
	// revocationCheck is how often the file of revocations is looked at.
	revocationCheck = 2 * time.Second
	// maxRevocations is how many lines a file of revocations may have, and maxRevocationBytes how
	// many bytes. A file with more is not read: the list that was read last stays in force.
	maxRevocations     = 1 << 20
	maxRevocationBytes = 128 << 20
)

// newClient returns a client that follows redirects to the same host only.
func newClient() *http.Client {
	return &http.Client{
		Timeout:   keySetTimeout,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme || len(via) > 3 {
				return errors.New("the key set moved to another address")
			}
			return nil
		},
	}
}

// checkAddress refuses an address that others could answer: not https, unless it is of this
// machine.
func checkAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return fmt.Errorf("cannot use %q as the address of a key set", address)
	}
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return fmt.Errorf("cannot use %q as the address of a key set: only https, or http to this machine", address)
	}
	return nil
}

// fetchSet asks for the key set.
func fetchSet(ctx context.Context, c *http.Client, address string) ([]key, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the key set is not there: status %d", resp.StatusCode)
	}
	text, err := allOf(resp.Body)
	if err != nil {
		return nil, err
	}
	return parseSet(text)
}

// agent is a participant as a revocation names it.
type agent struct{ workspace, id string }

// revocations is what a file of revocations holds. It is immutable.
type revocations struct {
	ids    map[string]struct{}
	before map[agent]float64 // tokens issued before this second
}

// has reports whether the token of c is revoked.
func (r *revocations) has(c *Claims) bool {
	if r == nil {
		return false
	}
	if _, ok := r.ids[c.ID]; ok {
		return true
	}
	before, ok := r.before[agent{c.Workspace, c.Agent}]
	return ok && c.Issued < before
}

// equal reports whether r and o revoke the same tokens.
func (r *revocations) equal(o *revocations) bool {
	return maps.Equal(r.ids, o.ids) && maps.Equal(r.before, o.before)
}

// readRevocations reads a file of revocations: one JSON object in a line, with jti, or with
// workspace_id, agent_id and issued_before. One line that is neither makes the file unreadable,
// because a revocation that is left out is worse than an error.
func readRevocations(name string) (*revocations, error) {
	text, err := smallfile.ReadUpTo(name, maxRevocationBytes)
	if err != nil {
		return nil, err
	}
	out := &revocations{ids: map[string]struct{}{}, before: map[agent]float64{}}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxTokenBytes)
	n := 0
	for lines.Scan() {
		if n++; n > maxRevocations {
			return nil, fmt.Errorf("%s has more than %d lines", name, maxRevocations)
		}
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var l struct {
			ID        *string  `json:"jti"`
			Workspace *string  `json:"workspace_id"`
			Agent     *string  `json:"agent_id"`
			Before    *float64 `json:"issued_before"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", name, n, err)
		}
		switch all := l.Workspace != nil && l.Agent != nil && l.Before != nil; {
		case l.ID != nil && l.Workspace == nil && l.Agent == nil && l.Before == nil:
			out.ids[*l.ID] = struct{}{}
		case all && l.ID == nil:
			a := agent{*l.Workspace, *l.Agent}
			out.before[a] = max(out.before[a], *l.Before)
		default:
			return nil, fmt.Errorf("%s, line %d: want jti, or workspace_id, agent_id and issued_before", name, n)
		}
	}
	return out, lines.Err()
}

// Current is the Verifier in force, which another one can replace while tokens are verified. Its
// methods may be called from any goroutine but for Replace and Close, which one calls at a time.
type Current struct{ v atomic.Pointer[inForce] }

// inForce adds base to the generations of a Verifier, so that claims which another one has verified
// are verified again.
type inForce struct {
	*Verifier
	base uint64
}

// NewCurrent returns a Current with v in force, which it owns.
func NewCurrent(v *Verifier) *Current {
	c := new(Current)
	c.v.Store(&inForce{Verifier: v})
	return c
}

// Replace puts next in force, which c owns from then on, and closes the one before. It reports
// false, closes next and changes nothing if both verify the same.
func (c *Current) Replace(next *Verifier) (replaced bool) {
	old := c.v.Load()
	if old.mark == next.mark {
		next.Close()
		return false
	}
	c.v.Store(&inForce{next, old.base + generationsApart})
	old.Close()
	return true
}

// generationsApart is more than the generations of one Verifier.
const generationsApart = 1 << 32

// Verify is Verifier.Verify.
func (c *Current) Verify(text string) (*Claims, error) { return c.v.Load().Verify(text) }

// VerifyKnown is Verifier.VerifyKnown.
func (c *Current) VerifyKnown(text string) (*Claims, error) { return c.v.Load().VerifyKnown(text) }

// Generation is Verifier.Generation; it differs between two that were in force. It does not
// allocate.
func (c *Current) Generation() uint64 {
	f := c.v.Load()
	return f.base + f.Verifier.Generation()
}

// Close closes the Verifier in force.
func (c *Current) Close() { c.v.Load().Close() }

// HasKeys reports whether there is a key to verify by. If there is none, a key set over HTTP is
// requested, without waiting for it.
func (c *Current) HasKeys() bool { return c.v.Load().hasKeys() }
