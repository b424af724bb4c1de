package lines

import (
	"math"
	"net/http"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/engine/connection"
	"trunkline/handlers/threads/method"
)

// unauthorized refuses a peer that shows no token that is accepted.
func (s *session) unauthorized(out []byte, f *method.Fault) []byte {
	s.srv.counts.Refused.Add(1)
	if f.Condition.Codes().Status == http.StatusUnauthorized {
		if wait := s.srv.cfg.Peers.Add(s.port.Remote(), time.Now()); wait > 0 {
			return s.refuse(out, method.Limited(wait, "too many tokens of this address were not accepted"))
		}
	}
	return s.reject(out, &method.Caller{}, authOperation, f)
}

// authorized reports whether the session's token is still valid. If not, only an auth line is taken
// for a while.
func (s *session) authorized(now connection.Instant) bool {
	if s.claims == nil {
		return false
	}
	if generation := s.srv.cfg.Verifier.Generation(); generation != s.generation {
		claims, err := s.srv.cfg.Verifier.VerifyKnown(s.bearer)
		if s.claims, s.generation = claims, generation; err != nil {
			s.claims, s.void = nil, method.Unverified(err)
		}
	}
	if s.claims != nil {
		if float64(now.Wall)/1000 < s.claims.Expires+s.srv.cfg.Skew {
			return true
		}
		s.void = method.BadToken("expired")
	}
	s.claims, s.until = nil, now.Mono+int64(AuthWithin)
	return false
}

// authOperation is what the audit calls a refusal of a token.
const authOperation = "auth"

// auth takes an auth line. The token is verified off the loop: a key set may have to be fetched.
// The line is read again then, so that the connection can be closed behind its reply.
func (s *session) auth(out, line []byte) []byte {
	bearer, ok := s.req.bearer()
	if !ok {
		s.closing = s.known == nil
		return s.refuse(out, &method.Fault{Condition: method.Invalid, Message: `auth needs params with protocol "` + protocol + `" and token`})
	}
	if v := s.verified; v != nil {
		s.verified = nil
		return s.authed(out, v)
	}
	s.send(&away{line: append([]byte(nil), line...), bearer: bearer})
	s.awaits = aToken
	return out
}

// authed answers an auth line.
func (s *session) authed(out []byte, a *away) []byte {
	if a.err != nil || a.claims == nil {
		s.closing = s.known == nil
		if a.err == nil {
			return s.unauthorized(out, &method.Fault{Condition: method.Defect, Message: "the token could not be verified"})
		}
		return s.unauthorized(out, method.Unverified(a.err))
	}
	if k := s.known; k != nil && (k.Agent != a.claims.Agent || k.Workspace != a.claims.Workspace) {
		s.closing = true
		s.caller.Claims = a.claims
		return s.reject(out, &s.caller, authOperation, &method.Fault{Condition: method.ClaimMismatch, Message: "the token is for another agent or workspace than the first one"})
	}
	s.known, s.claims, s.bearer, s.generation, s.until = a.claims, a.claims, a.bearer, a.generation, 0
	s.renewed()
	c := a.claims
	b := jsonx.Build(append(appendHead(out, &s.req, "true"), `,"result":`...))
	b = b.Text("agent_id", c.Agent).Text("workspace_id", c.Workspace).Text("role", c.Role.String()).Text("session_id", c.Session)
	b = append(method.AppendTime(append(b.Name("expires_at"), '"'), time.UnixMilli(int64(math.Min(c.Expires, maxTime)*1000))), '"')
	return append(b.End(), "}\n"...)
}

// maxTime is the last second that a time shows with four digits of its year.
const maxTime = 253402300799
