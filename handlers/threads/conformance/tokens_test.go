package conformance

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"trunkline/fuzz/kit"
)

// unlimited lets a test show many bad tokens.
const unlimited = "TRUNKLINE_THREADS_FAILED_AUTH_PER_10S=100000"

// signed is a token with the claims of threads §9, by any key; head are further members of its
// header.
func signed(t testing.TB, m jwt.SigningMethod, key any, head map[string]any) string {
	t.Helper()
	c := jwt.MapClaims{}
	part, _ := base64.RawURLEncoding.DecodeString(strings.Split(reviewer, ".")[1])
	if err := json.Unmarshal(part, &c); err != nil {
		t.Fatal(err)
	}
	token := jwt.NewWithClaims(m, c)
	maps.Copy(token.Header, head)
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// reason calls a method with a token, and returns ok or why the token is refused.
func (s *server) reason(token string) string {
	s.t.Helper()
	a := s.post("heartbeat_session", token, `{`)
	e, _ := a.body["error"].(map[string]any)
	details, _ := e["details"].(map[string]any)
	switch {
	case a.status == 400:
		return "ok"
	case a.status == 401 && e["retryable"] == true:
		return fmt.Sprint(details["reason"], ", retryable")
	case a.status == 401:
		return fmt.Sprint(details["reason"])
	}
	return a.text
}

// TestClaims has the rows of threads §3.1 about what is in a token.
func TestClaims(t *testing.T) {
	t.Parallel()
	s := start(t, unlimited, "AUTH_CLOCK_SKEW_SECONDS=5")
	now := time.Now().Unix()
	with := func(name string, value any) claims { return claims{name: value} }
	for _, c := range []struct {
		changes claims
		want    string
	}{
		{nil, "ok"},
		{with("iss", issuer+"/"), "bad_issuer"}, {with("iss", nil), "bad_issuer"},
		{with("aud", "other"), "bad_audience"}, {with("aud", nil), "bad_audience"}, {with("aud", []string{"a", "orkiva"}), "ok"}, {with("aud", []string{}), "bad_audience"},
		{with("exp", now-60), "expired"}, {with("exp", now-1), "ok"}, {with("exp", nil), "expired"}, {with("exp", "4102444800"), "expired"}, {with("exp", 0), "expired"},
		{with("nbf", now+60), "not_yet_valid"}, {with("nbf", now+2), "ok"}, {with("nbf", "x"), "not_yet_valid"},
		{with("iat", nil), "bad_iat"}, {with("iat", 0), "bad_iat"}, {with("iat", now+300), "bad_iat"}, {with("iat", now+40), "ok"}, {with("iat", 4102444800), "bad_iat"},
		{with("agent_id", nil), "bad_claim:agent_id"}, {with("agent_id", " \t"), "bad_claim:agent_id"}, {with("agent_id", 7), "bad_claim:agent_id"},
		{with("agent_id", "system:supervisor"), "bad_claim:agent_id"}, {with("agent_id", "a\nb"), "bad_claim:agent_id"},
		{with("agent_id", strings.Repeat("x", 256)), "ok"}, {with("agent_id", strings.Repeat("x", 257)), "bad_claim:agent_id"},
		{with("workspace_id", ""), "bad_claim:workspace_id"}, {with("session_id", nil), "bad_claim:session_id"}, {with("jti", nil), "bad_claim:jti"},
		{with("role", nil), "bad_claim:role"}, {with("role", "worker"), "bad_claim:role"}, {with("role", "Coordinator"), "bad_claim:role"}, {with("role", "operator"), "ok"},
	} {
		if got := s.reason(tokenOf(c.changes)); got != c.want {
			t.Errorf("%v: %s, want %s", c.changes, got, c.want)
		}
	}
	short := start(t, "AUTH_MAX_TOKEN_TTL_SECONDS=3600")
	for life, want := range map[int64]string{3600: "ok", 3601: "ttl_too_long"} {
		if got := short.reason(tokenOf(claims{"iat": now - 60, "exp": now - 60 + life})); got != want {
			t.Errorf("a life of %d s: %s, want %s", life, got, want)
		}
	}
	const typ = "typ"
	for _, c := range []struct {
		head map[string]any
		want string
	}{
		{map[string]any{typ: "at+jwt"}, "ok"}, {map[string]any{typ: "jwt"}, "ok"}, {map[string]any{typ: "application/AT+JWT"}, "ok"}, {map[string]any{typ: "at+jwt+x"}, "bad_header"},
		{map[string]any{typ: 7}, "bad_header"}, {map[string]any{typ: "JWE"}, "bad_header"}, {map[string]any{"crit": []string{"x"}}, "bad_header"}, {map[string]any{"b64": false}, "bad_header"},
		{map[string]any{"kid": "any"}, "ok"}, // a secret has no names
	} {
		if got := s.reason(signed(t, jwt.SigningMethodHS256, []byte(secret), c.head)); got != c.want {
			t.Errorf("%v: %s, want %s", c.head, got, c.want)
		}
	}
	none := signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil)
	for token, want := range map[string]string{
		none: "bad_algorithm", signed(t, jwt.SigningMethodHS512, []byte(secret), nil): "bad_algorithm", signed(t, jwt.SigningMethodHS256, []byte("other"), nil): "bad_signature",
		reviewer[:len(reviewer)-6] + "AAAAAA": "bad_signature", reviewer + "A": "bad_signature", reviewer + "=": "malformed", "x.y.z": "malformed", "x": "malformed", reviewer + ".x": "malformed",
		strings.Repeat("x", 8192): "malformed", strings.Repeat("x", 8193): "too_large",
	} {
		if got := s.reason(token); got != want {
			t.Errorf("%s: %s, want %s", token, got, want)
		}
	}
}

// TestPublicKey: a token is by the key and by a method of its kind, and by nothing else that the
// key is used as.
func TestPublicKey(t *testing.T) {
	t.Parallel()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, _ := x509.MarshalPKIXPublicKey(&private.PublicKey)
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	name := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, unlimited, "AUTH_HS256_SECRET_FILE=", "AUTH_PUBLIC_KEY_FILE="+name)
	for token, want := range map[string]string{
		signed(t, jwt.SigningMethodRS256, private, nil): "ok", signed(t, jwt.SigningMethodPS512, private, nil): "ok", signed(t, jwt.SigningMethodRS384, private, map[string]any{"kid": "x"}): "ok",
		signed(t, jwt.SigningMethodHS256, text, nil): "bad_algorithm", signed(t, jwt.SigningMethodHS256, der, nil): "bad_algorithm", reviewer: "bad_algorithm",
		signed(t, jwt.SigningMethodES256, other, nil): "bad_algorithm", signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil): "bad_algorithm",
	} {
		if got := s.reason(token); got != want {
			t.Errorf("%s: %s, want %s", token, got, want)
		}
	}
}

// TestKeySet has the rows of threads §3.1 about kid, and a set that comes late and changes.
func TestKeySet(t *testing.T) {
	t.Parallel()
	a, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	b, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	enc := base64.RawURLEncoding.EncodeToString
	ec := func(kid, more string, k *ecdsa.PrivateKey) string {
		point, err := k.PublicKey.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`{"kty":"EC","crv":"P-256","kid":"%s","x":"%s","y":"%s"%s}`, kid, enc(point[1:33]), enc(point[33:]), more)
	}
	rs := fmt.Sprintf(`{"kty":"RSA","kid":"r","alg":"RS256","n":"%s","e":"%s"}`, enc(r.N.Bytes()), enc(big.NewInt(int64(r.E)).Bytes()))
	oct := fmt.Sprintf(`{"kty":"oct","kid":"s","k":"%s"}`, enc([]byte(secret)))
	set := `{"keys":[` + strings.Join([]string{ec("a", "", a), ec("b", `,"use":"enc"`, b), rs, oct}, ",") + `]}`
	var asked atomic.Int32
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(set))
	}))
	defer issuer.Close()
	named := func(kid string) map[string]any { return map[string]any{"kid": kid} }
	s := start(t, unlimited, "AUTH_HS256_SECRET_FILE=", "AUTH_JWKS_URL="+issuer.URL)
	for _, c := range []struct{ token, want string }{
		{signed(t, jwt.SigningMethodES256, a, named("a")), "ok"},
		{signed(t, jwt.SigningMethodES256, a, nil), "ok"}, // the only key that fits
		{signed(t, jwt.SigningMethodES256, b, named("a")), "bad_signature"},
		{signed(t, jwt.SigningMethodES256, b, named("b")), "bad_algorithm"}, // a key for something else
		{signed(t, jwt.SigningMethodRS256, r, named("r")), "ok"},
		{signed(t, jwt.SigningMethodRS384, r, named("r")), "bad_algorithm"},
		{signed(t, jwt.SigningMethodRS256, r, named("a")), "bad_algorithm"},
		{signed(t, jwt.SigningMethodHS256, []byte(secret), named("s")), "bad_algorithm"},
		{signed(t, jwt.SigningMethodES256, a, named("A")), "unknown_key, retryable"}, // it may be in the next set
		{signed(t, jwt.SigningMethodES256, a, named("")), "unknown_key, retryable"},
		{signed(t, jwt.SigningMethodES256, a, map[string]any{"kid": 1}), "bad_header"},
	} {
		if got := s.reason(c.token); got != c.want {
			t.Errorf("%s: %s, want %s", c.token, got, c.want)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the set was asked for %d times within 30 s", n)
	}
	late := s.post("get_thread", signed(t, jwt.SigningMethodES256, a, named("A")), `{}`)
	if wait := late.header.Get("Retry-After"); late.status != 401 || wait == "" || wait == "0" {
		t.Errorf("a key that may come: %d, Retry-After %q", late.status, wait)
	}
}

// TestKeySetAway: while the key set is down, garbage or hangs, the server starts, is not ready, and
// blames no token; once the set is back, tokens are accepted.
func TestKeySetAway(t *testing.T) {
	t.Parallel()
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	point, _ := key.PublicKey.Bytes()
	enc := base64.RawURLEncoding.EncodeToString
	set := fmt.Sprintf(`{"keys":[{"kty":"EC","crv":"P-256","kid":"a","x":"%s","y":"%s"}]}`, enc(point[1:33]), enc(point[33:]))
	token := signed(t, jwt.SigningMethodES256, key, map[string]any{"kid": "a"})
	for name, away := range map[string]func(http.ResponseWriter, *http.Request){
		"down":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"garbage": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"hangs":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var back atomic.Bool
			issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if back.Load() {
					_, _ = w.Write([]byte(set))
					return
				}
				away(w, r)
			}))
			defer issuer.Close()
			s := start(t, "AUTH_HS256_SECRET_FILE=", "AUTH_JWKS_URL="+issuer.URL, "TRUNKLINE_THREADS_FAILED_AUTH_PER_10S=1")
			if a := s.request("GET", "/ready", "", ""); a.status != 503 || a.body["reason"] != "key_set" {
				t.Error(a.status, a.text)
			}
			for range 2 { // more than one address may have that are not accepted
				for _, a := range []*answer{s.post("get_thread", token, `{}`), s.mcp(rpc("tools/list", ""), "Authorization", "Bearer "+token)} {
					e, _ := a.body["error"].(map[string]any)
					if a.status != 503 || a.code() != "INTERNAL" || e["retryable"] != true || a.header.Get("Retry-After") != "1" || a.header.Get("Www-Authenticate") != "" {
						t.Error(a.status, a.header, a.text)
					}
				}
			}
			p := s.connect()
			_ = p.send("%s", authOf(1, token))
			p.want(`{"id":1,"ok":false,"error":{"code":"INTERNAL"`)
			back.Store(true)
			s.eventually("the key set is back", func() bool { return s.post("heartbeat_session", token, `{`).status == 400 })
			if a := s.request("GET", "/ready", "", ""); a.status != 200 {
				t.Error(a.status, a.text)
			}
			s.dial(token)
		})
	}
}

// TestFailedTokens: an address has 30 refused tokens in 10 s over all surfaces, then 429; good
// tokens go on.
func TestFailedTokens(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i := range 30 {
		switch i % 3 {
		case 0:
			if got := s.reason("bad"); got != "malformed" {
				t.Error(got)
			}
		case 1:
			if a := s.mcp(rpc("tools/list", ""), "Authorization", "Bearer bad"); a.status != 401 {
				t.Error(a.status, a.text)
			}
		case 2:
			p := s.connect()
			_ = p.send("%s", authOf(1, "bad"))
			p.want(`{"id":1,"ok":false,"error":{"code":"UNAUTHORIZED"`)
		}
	}
	for _, a := range []*answer{s.post("get_thread", "bad", `{}`), s.mcp(rpc("tools/list", ""), "Authorization", "Bearer bad")} {
		if a.status != 429 || a.code() != "RATE_LIMITED" || a.header.Get("Retry-After") == "" || !strings.Contains(a.text, `"retry_after_ms":`) {
			t.Error(a.status, a.text, a.header)
		}
	}
	p := s.connect()
	_ = p.send("%s", authOf(1, "bad"))
	p.want(`{"id":1,"ok":false,"error":{"code":"RATE_LIMITED"`)
	if got := s.reason(reviewer); got != "ok" {
		t.Error(got)
	}
	s.dial(reviewer)
}

// TestPinned: a server for one workspace answers tokens of another with 403 (threads §3.1).
func TestPinned(t *testing.T) {
	t.Parallel()
	s := start(t, "WORKSPACE_ID=wk_mobile_core")
	s.create()
	if a := s.post("get_thread", foreigner, `{}`); a.status != 403 || a.code() != "OUT_OF_SCOPE_WORKSPACE" {
		t.Error(a.status, a.text)
	}
	if a := s.request("POST", "/v1/mcp/get_thread", foreigner, `{}`); a.status != 403 || a.code() != "WORKSPACE_MISMATCH" {
		t.Error(a.status, a.text)
	}
	if a := s.mcp(rpc("tools/list", ""), "Authorization", "Bearer "+foreigner); a.status != 403 || a.code() != "OUT_OF_SCOPE_WORKSPACE" {
		t.Error(a.status, a.text)
	}
	p := s.connect()
	_ = p.send("%s", authOf(1, foreigner))
	p.want(`{"id":1,"ok":false,"error":{"code":"OUT_OF_SCOPE_WORKSPACE"`)
	p.ends("another workspace")
}

// TestRefusedStarts has what a server does not start with, and that it starts closed without keys.
func TestRefusedStarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"secret": secret, "short": secret[:31], "revoked": "{}", "key": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key := []string{"AUTH_HS256_SECRET_FILE=secret", "AUTH_ISSUER=" + issuer, "API_PORT=0", "NDJSON_ADDR=127.0.0.1:0"}
	for want, env := range map[string][]string{
		"cannot use 2 key sources":         {"AUTH_PUBLIC_KEY_FILE=key"},
		"cannot use the keys of none":      {"AUTH_HS256_SECRET_FILE=none"},
		"the secret has 31 bytes":          {"AUTH_HS256_SECRET_FILE=short"},
		"cannot use the keys of key":       {"AUTH_HS256_SECRET_FILE=", "AUTH_PUBLIC_KEY_FILE=key"},
		"only https":                       {"AUTH_HS256_SECRET_FILE=", "AUTH_JWKS_URL=http://issuer.example/keys"},
		"threads.issuer is not set":        {"AUTH_ISSUER="},
		"there is no key source":           {"AUTH_HS256_SECRET_FILE="},
		"cannot read the revocations":      {"AUTH_REVOCATION_FILE=revoked"},
		"threads.clock_skew_secs":          {"AUTH_CLOCK_SKEW_SECONDS=301"},
		"they are one setting":             {"TRUNKLINE_THREADS_LISTEN_ADDR=127.0.0.1:1"},
		"threads.insecure_bind":            {"API_HOST=0.0.0.0"},
		"threads.lines_addr":               {"NDJSON_ADDR=0.0.0.0:0"},
		"threads.retention_mode":           {"RETENTION_MODE=30d"},
		"threads.enable_automated_redacti": {"ENABLE_AUTOMATED_REDACTION=true"},
	} {
		cmd := exec.Command(kit.Program(t, scratch), "serve", "--dev=false", "--set", "store.mode=memory",
			"--listen", "127.0.0.1:0", "--http-listen", "", "--admin-listen", "")
		cmd.Dir, cmd.Env = dir, append(append(os.Environ(), key...), env...)
		timeout := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		out, err := cmd.CombinedOutput()
		if timeout.Stop(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %s (%v), want %s", env, out, err, want)
		}
	}
}

// TestNoKeys: without a key source the surfaces stay closed, with one line about that.
func TestNoKeys(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(kit.Program(t, scratch), "serve", "--set", "store.mode=memory",
		"--listen", "127.0.0.1:0", "--http-listen", "", "--admin-listen", "")
	log := &kit.Text{}
	cmd.Dir, cmd.Stderr = t.TempDir(), log
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, cmd: cmd, log: log}
	t.Cleanup(s.kill)
	s.eventually("the start", func() bool { return strings.Contains(log.String(), `"msg":"serving"`) })
	if text := log.String(); strings.Count(text, "threads off: no key source") != 1 || strings.Contains(text, "threads http listening") {
		t.Error(text)
	}
}
