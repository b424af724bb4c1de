package method

import (
	"errors"
	"strings"

	"trunkline/codec/jsonx"
	"trunkline/handlers/threads/token"
)

// Unverified returns how a token is answered that a Verifier refuses with err.
func Unverified(err error) *Fault {
	var no *token.Refusal
	switch {
	case errors.Is(err, token.ErrOutOfScope):
		return &Fault{Condition: OtherWorkspace, Message: "the token is for a workspace that is not served here"}
	case !errors.As(err, &no):
		return BadToken("malformed")
	case no.Retry == 0:
		return BadToken(no.Reason)
	}
	f := &Fault{Condition: UnknownKey, Message: "the bearer token is not accepted: its key is not in the key set yet"}
	if no.Unavailable {
		f = &Fault{Condition: KeysUnavailable, Message: "tokens cannot be verified now: the key set cannot be read"}
	}
	f.Details = jsonx.Build(nil).Text("reason", no.Reason).Int("retry_after_ms", no.Retry.Milliseconds()).End()
	return f
}

// BadToken is the refusal of a token for a reason of the table in threads §3.1.
func BadToken(reason string) *Fault {
	return &Fault{Condition: Unauthorized, Message: "the bearer token is not accepted", Details: jsonx.Build(nil).Text("reason", reason).End()}
}

// Challenge has the values of WWW-Authenticate: for a request without a bearer token, and for one
// whose token is refused (RFC 6750 §3.1).
type Challenge [2][]string

// NewChallenge returns a Challenge that names the URL of a resource's metadata, if there is one.
func NewChallenge(metadata string) Challenge {
	if metadata == "" {
		return Challenge{{"Bearer"}, {`Bearer error="invalid_token"`}}
	}
	metadata = `resource_metadata="` + metadata + `"`
	return Challenge{{"Bearer " + metadata}, {`Bearer error="invalid_token", ` + metadata}}
}

// For returns the value for a request with these fields of Authorization.
func (c Challenge) For(authorization []string) []string {
	for _, field := range authorization {
		if scheme, _, _ := strings.Cut(field, " "); strings.EqualFold(scheme, "bearer") {
			return c[1]
		}
	}
	return c[0]
}
