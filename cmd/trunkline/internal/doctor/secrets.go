package doctor

import (
	"context"
	"errors"
	"time"

	"trunkline/handlers/threads/token"
)

// threadKeys looks whether tokens of agent threads could be verified: a file is read, a key set of
// another machine is asked for.
func threadKeys(_ context.Context, s *subject) []Finding {
	t := &s.cfg.Threads
	key, source := t.KeySource()
	if source == "" {
		return []Finding{skip("threads", "there is no key source: agent threads are closed")}
	}
	v, err := token.New(t.Config)
	if err != nil {
		return []Finding{fail(key, "name a key source that this user can read; 'trunkline token check' tries one", "%v", err)}
	}
	defer v.Close()
	if t.JWKSURL == "" {
		return []Finding{ok(key, "the keys of %s can be used", source)}
	}
	if s.offline {
		return []Finding{skip(key, "%s is not asked", source)}
	}
	if err := askKeySet(v, t.Issuer, t.Audience); err != nil {
		return []Finding{fail(key, "look whether this machine reaches the address, and whether it is that of a JSON Web Key Set", "no usable key came from %s (%v)", source, err)}
	}
	return []Finding{ok(key, "the key set of %s can be used", source)}
}

// askKeySet has the key set asked for, by a token that none of its keys has signed. It returns an
// error if there are no keys.
func askKeySet(v *token.Verifier, issuer, audience string) error {
	private, _, err := token.NewKey()
	if err != nil {
		return err
	}
	now := time.Now()
	text, err := token.Sign(private, &token.Claims{
		Agent: "doctor", Workspace: "doctor", Session: "doctor", ID: "doctor", Role: token.Auditor,
		Issued: float64(now.Unix()), Expires: float64(now.Add(time.Minute).Unix()),
	}, issuer, audience)
	if err != nil {
		return err
	}
	_, err = v.Verify(text)
	var refusal *token.Refusal
	if errors.As(err, &refusal) && !refusal.Unavailable {
		return nil // the keys are there, and it is none of theirs
	}
	return err
}

// projectSecrets reads the files with the token of clients and the key of a planner.
func projectSecrets(_ context.Context, s *subject) []Finding {
	const key = "exacta.auth_token_file"
	e := &s.cfg.Exacta
	if e.AuthTokenFile == "" && e.PlannerKeyFile == "" {
		return []Finding{skip(key, "no file with a token or a key is named")}
	}
	if _, err := e.Server(); err != nil {
		return []Finding{fail(key, "name a file that this user can read, with a token of the length that the message names", "%v", err)}
	}
	return []Finding{ok(key, "the files with tokens and keys can be read")}
}

// consoleTokens reads the files with the tokens of the admin listener, and shows who may read it.
func consoleTokens(_ context.Context, s *subject) []Finding {
	const key = "admin.console_token_file"
	a := &s.cfg.Admin
	switch {
	case a.ListenAddr == "":
		return []Finding{skip(key, "%s is empty", keyAdmin)}
	case !a.HasTokens() && !a.Loopback():
		return []Finding{warn(key, "name a file with a token there, and leave admin.insecure_bind out", "%s %s is %s",
			keyAdmin, a.ListenAddr, a.Readers())}
	case !a.HasTokens():
		return []Finding{skip(key, "no file with a token is named: %s is %s", a.ListenAddr, a.Readers())}
	}
	if _, _, err := a.ConsoleTokens(); err != nil {
		return []Finding{fail(key, "name a file that this user can read, with a token of the length that the message names", "%v", err)}
	}
	return []Finding{ok(key, "the files with tokens can be read: %s is %s", a.ListenAddr, a.Readers())}
}
