// Package token verifies the bearer tokens of agent threads, and signs those of development
// (threads §3.1): JSON Web Tokens in compact form, by a key set over HTTP or in a file, a public
// key, or a shared secret.
//
// A Verifier is what a server asks. It remembers verified tokens for a minute, follows its key set
// and its file of revocations, and answers from memory. What it refuses, it refuses with a Refusal
// that names one reason of the contract's table; the order of the checks is the order of that
// table.
//
// The signature of a token is checked by golang-jwt, the keys of a set are read by jwkset. Which
// key may serve which algorithm, and what a claim must look like, is decided here.
package token

import (
	"encoding/base64"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"trunkline/codec/jsonx"
)

// Role is what the bearer of a token may do (threads §3.1).
type Role uint8

// The roles. The zero Role is none of them.
const (
	Participant Role = iota + 1
	Coordinator
	Auditor
	Operator
)

var roleNames = [...]string{Participant: "participant", Coordinator: "coordinator", Auditor: "auditor", Operator: "operator"}

// String returns the name of r as in a token.
func (r Role) String() string { return roleNames[r] }

// ParseRole returns the role of a name, 0 if there is none. Case matters.
func ParseRole(name string) Role {
	for r, n := range roleNames {
		if n == name && n != "" {
			return Role(r)
		}
	}
	return 0
}

// Claims are those of a verified token. They are immutable.
type Claims struct {
	Agent, Workspace, Session, ID string
	Role                          Role
	Issued, Expires               float64 // seconds since 1970
}

// The claims that are read, in the order of their checks.
const (
	claimIssuer = iota
	claimAudience
	claimExpires
	claimNotBefore
	claimIssued
	claimAgent
	claimWorkspace
	claimSession
	claimID
	claimRole
	claimCount
)

var claimNames = jsonx.NewNames("iss", "aud", "exp", "nbf", "iat", "agent_id", "workspace_id", "session_id", "jti", "role")

// maxClaimBytes is the longest value of an identifying claim.
const maxClaimBytes = 256

// maxClaimDepth is how deep the payload of a token may nest.
const maxClaimDepth = 32

// skewAhead is how far ahead of the clock iat may be, in seconds, beside the skew.
const skewAhead = 60

// claimsOf reads and checks the payload of a token whose signature is right. now is in seconds
// since 1970. A claim that is repeated makes the token malformed.
func (c *Config) claimsOf(payload []byte, now float64) (*Claims, error) {
	var m [claimCount]jsonx.Member
	if r, _ := claimNames.Scan(payload, maxClaimDepth, m[:]); r != jsonx.ScanOK {
		return nil, refuse(malformed)
	}
	skew := c.ClockSkew.Seconds()
	if iss, ok := text(&m[claimIssuer]); !ok || iss != c.Issuer {
		return nil, refuse("bad_issuer")
	}
	if !c.audienceIn(&m[claimAudience]) {
		return nil, refuse("bad_audience")
	}
	exp, ok := seconds(&m[claimExpires])
	if !ok || exp < 1 || now >= exp+skew {
		return nil, refuse("expired")
	}
	if nbf := &m[claimNotBefore]; nbf.Kind != jsonx.Absent {
		if from, ok := seconds(nbf); !ok || now < from-skew {
			return nil, refuse("not_yet_valid")
		}
	}
	iat, ok := seconds(&m[claimIssued])
	if !ok || iat < 1 || iat >= exp || iat > now+skewAhead+skew {
		return nil, refuse("bad_iat")
	}
	if c.MaxTokenTTL > 0 && exp-iat > c.MaxTokenTTL.Seconds() {
		return nil, refuse("ttl_too_long")
	}
	out := &Claims{Issued: iat, Expires: exp}
	for i, to := range map[int]*string{claimAgent: &out.Agent, claimWorkspace: &out.Workspace, claimSession: &out.Session, claimID: &out.ID} {
		if v, ok := text(&m[i]); ok {
			*to = v
		}
	}
	for i, v := range []string{out.Agent, out.Workspace, out.Session, out.ID} {
		if i += claimAgent; !identifies(v) || i == claimAgent && strings.HasPrefix(v, "system:") {
			return nil, refuse("bad_claim:" + claimNames.Name(i))
		}
	}
	role, _ := text(&m[claimRole])
	if out.Role = ParseRole(role); out.Role == 0 {
		return nil, refuse("bad_claim:role")
	}
	return out, nil
}

// strict reads the parts of a token as the verification does.
var strict = base64.RawURLEncoding.Strict()

// Workspace returns the workspace of a token that nothing has verified: it may be forged. It is
// empty where none can be read, and then the token is none that is accepted.
func Workspace(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	part, _, _ := strings.Cut(rest, ".")
	if len(token) > maxTokenBytes {
		return ""
	}
	payload, err := strict.DecodeString(part)
	var m [claimCount]jsonx.Member
	if err != nil {
		return ""
	}
	if r, _ := claimNames.Scan(payload, maxClaimDepth, m[:]); r != jsonx.ScanOK {
		return ""
	}
	workspace, ok := text(&m[claimWorkspace])
	if !ok || !identifies(workspace) {
		return ""
	}
	return workspace
}

// audienceIn reports whether the claim is the audience or a list that contains it.
func (c *Config) audienceIn(m *jsonx.Member) bool {
	if aud, ok := text(m); ok {
		return aud == c.Audience
	}
	if m.Kind != jsonx.ArrayStart {
		return false
	}
	list := jsonx.OpenArray(m.Raw)
	for v, ok := list.Next(); ok; v, ok = list.Next() {
		if aud, ok := v.Text(); ok && string(aud) == c.Audience {
			return true
		}
	}
	return false
}

// text returns the meaning of a string. One with half a surrogate pair has none: all halves would
// have the same.
func text(m *jsonx.Member) (string, bool) {
	if m.Kind != jsonx.String {
		return "", false
	}
	s := string(m.Text())
	return s, !m.Escaped || !strings.ContainsRune(s, utf8.RuneError)
}

// seconds returns a finite number.
func seconds(m *jsonx.Member) (float64, bool) {
	if m.Kind != jsonx.Number {
		return 0, false
	}
	switch n := jsonx.ParseNumber(m.Raw); n.Kind {
	case jsonx.Int:
		return float64(n.Int), true
	case jsonx.Uint:
		return float64(n.Uint), true
	default:
		return n.Float, !n.Overflow && !math.IsInf(n.Float, 0)
	}
}

// identifies reports whether v may be an identifying claim: not blank, of bounded length, valid
// UTF-8 without control characters.
func identifies(v string) bool {
	return len(v) <= maxClaimBytes && strings.TrimSpace(v) != "" && utf8.ValidString(v) && !strings.ContainsFunc(v, unicode.IsControl)
}
