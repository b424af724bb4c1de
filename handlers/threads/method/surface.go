package method

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"trunkline/engine/obs"
	"trunkline/handlers/threads/token"
)

// Surface is what servers of methods have in common.
type Surface struct {
	// Rows are the methods that are served, Dispatcher runs them.
	Rows       []Row
	Dispatcher Dispatcher
	// Verify returns the claims of a token. An error that is neither a *token.Refusal nor
	// token.ErrOutOfScope refuses it, too.
	Verify func(token string) (*token.Claims, error)
	// Peers counts failed authentications; nil: counts of its own, with the default limit.
	Peers *token.Peers
	// Pending bounds the memory of requests; nil: a budget of its own, of the default size.
	Pending *Budget
	// IDs appends a new request id: req_ and a ULID.
	IDs func(dst []byte) []byte
	// ResourceMetadata is the URL that a 401 names; empty: none.
	ResourceMetadata string
	// Meter gets the latencies; nil: they are not kept.
	Meter *obs.Meter
	// Now is the clock of answers and of limits; nil: time.Now.
	Now func() time.Time
	// Logger gets the lines; nil: nothing does.
	Logger *slog.Logger
}

// WithDefaults returns s with the defaults of what is nil.
func (s Surface) WithDefaults() Surface {
	s.Peers = cmp.Or(s.Peers, token.NewPeers(0))
	if s.Pending == nil {
		s.Pending = NewBudget(0)
	}
	if s.Meter == nil {
		s.Meter = NewMeter(nil)
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	s.Logger = cmp.Or(s.Logger, slog.New(slog.DiscardHandler))
	return s
}

// Authenticate returns the claims of the token in the Authorization fields of a request from an
// address. Refusals count against the address, which is refused for a while after too many.
func (s *Surface) Authenticate(fields []string, remote string) (claims *token.Claims, f *Fault) {
	text, ok := Bearer(fields)
	switch {
	case len(fields) == 0:
		f = BadToken("missing")
	case !ok:
		f = BadToken("malformed")
	default:
		var err error
		if claims, err = s.Verify(text); err == nil {
			return claims, nil
		}
		f = Unverified(err)
	}
	if f.Condition.Codes().Status == http.StatusUnauthorized {
		if wait := s.Peers.Add(remote, s.Now()); wait > 0 {
			return nil, Limited(wait, "too many requests of this address failed to authenticate")
		}
	}
	return nil, f
}
