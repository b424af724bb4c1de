package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
)

const (
	now    = 1_800_000_000
	secret = "0123456789abcdef0123456789abcdef"
	header = `{"alg":"HS256","typ":"JWT"}`
)

// good is a payload that every check accepts at now.
func good() map[string]any {
	return map[string]any{"iss": "i", "aud": DefaultAudience, "exp": now + 60, "iat": now - 60, "agent_id": "a", "workspace_id": "w", "session_id": "s", "jti": "j", "role": "participant"}
}

// with is good with other members; nil takes one out.
func with(pairs ...any) string {
	m := good()
	for i := 0; i < len(pairs); i += 2 {
		if m[pairs[i].(string)] = pairs[i+1]; pairs[i+1] == nil {
			delete(m, pairs[i].(string))
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func enc(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// signed is a token of the given header and payload.
func signed(tb testing.TB, method jwt.SigningMethod, private any, header, payload string) string {
	tb.Helper()
	text := enc(header) + "." + enc(payload)
	sig, err := method.Sign(text, private)
	if err != nil {
		tb.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

// hs is a token by the shared secret.
func hs(tb testing.TB, header, payload string) string {
	return signed(tb, jwt.SigningMethodHS256, []byte(secret), header, payload)
}

func file(tb testing.TB, text string) string {
	tb.Helper()
	name := filepath.Join(tb.TempDir(), "f")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return name
}

func atNow() time.Time { return time.Unix(now, 0) }

// open is a Verifier of cfg, with the shared secret unless cfg names keys.
func open(tb testing.TB, cfg Config) *Verifier {
	tb.Helper()
	if cfg.JWKSURL == "" && cfg.JWKSFile == "" && cfg.PublicKeyFile == "" {
		cfg.HS256SecretFile = file(tb, secret+"\n")
	}
	if cfg.Issuer = "i"; cfg.Now == nil {
		cfg.Now = atNow
	}
	v, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(v.Close)
	return v
}

// reason is how Verify answers: a reason, "ok", or the text of another error.
func reason(v *Verifier, token string) string {
	c, err := v.Verify(token)
	var r *Refusal
	switch {
	case errors.As(err, &r) && r.Unavailable:
		return "unavailable"
	case errors.As(err, &r) && r.Retry > 0:
		return fmt.Sprint(r.Reason, ", again in ", r.Retry)
	case errors.As(err, &r):
		return r.Reason
	case err != nil:
		return err.Error()
	case c == nil:
		return "no claims"
	}
	return "ok"
}

// TestChecks is the table of threads §3.1 but for the rows about key sets.
func TestChecks(t *testing.T) {
	plain := open(t, Config{})
	f := func(v *Verifier, token, want string) {
		t.Helper()
		if got := reason(v, token); got != want {
			t.Errorf("%.120s: %s, want %s", token, got, want)
		}
	}
	payload := func(want string, pairs ...any) { t.Helper(); f(plain, hs(t, header, with(pairs...)), want) }
	head := func(want, header string) { t.Helper(); f(plain, hs(t, header, with()), want) }

	payload("ok")
	for _, bad := range []string{"", "a", "a.b", "a.b.c", "a.b.c.d", enc(header) + "." + enc(with()) + ".", strings.Repeat("a", maxTokenBytes), strings.Repeat("a", maxTokenBytes+1)} {
		want := malformed
		if strings.HasSuffix(bad, ".") {
			want = "bad_signature"
		} else if len(bad) > maxTokenBytes {
			want = "too_large"
		}
		f(plain, bad, want)
	}
	atLimit := maxTokenBytes
	for size := 5000; ; size++ {
		token := hs(t, header, with("pad", strings.Repeat("x", size)))
		if len(token) > atLimit {
			f(plain, token, "too_large")
			break
		}
		if len(token) > atLimit-3 {
			f(plain, token, "ok")
		}
	}

	for _, alg := range []string{"none", "None", "HS384", "RS256", "ES256", "EdDSA", "", "x"} {
		head("bad_algorithm", fmt.Sprintf(`{"alg":%q}`, alg))
	}
	head("bad_algorithm", `{"typ":"JWT"}`)
	f(plain, enc(`{"alg":"none"}`)+"."+enc(with())+".", "bad_algorithm")
	head("ok", `{"alg":"HS256"}`)
	head("ok", `{"alg":"HS256","typ":"at+jwt","kid":"any"}`)
	head("bad_header", `{"alg":"HS256","typ":"JWE"}`)
	head("bad_header", `{"alg":"HS256","typ":7}`)
	head("bad_header", `{"alg":"HS256","crit":["exp"]}`)
	head("bad_header", `{"alg":"HS256","b64":false}`)
	f(plain, signed(t, jwt.SigningMethodHS256, []byte(secret+"x"), header, with()), "bad_signature")
	f(plain, hs(t, header, with())+"=", malformed)

	for _, bad := range []string{`[]`, `null`, `"x"`, `{"iss":"i"`, strings.Replace(with(), `"role":`, `"role":"auditor","role":`, 1)} {
		f(plain, hs(t, header, bad), malformed)
	}
	for _, v := range []any{nil, "I", "i ", 7, []string{"i"}} {
		payload("bad_issuer", "iss", v)
	}
	for _, v := range []any{nil, "x", "", 7, []string{}, []string{"x"}, []any{7}} {
		payload("bad_audience", "aud", v)
	}
	payload("ok", "aud", []any{"x", 7, DefaultAudience})
	for _, v := range []any{nil, "x", 0, now - 1, now, json.Number("1e999")} {
		payload("expired", "exp", v)
	}
	payload("ok", "exp", now+1)
	payload("ok", "exp", float64(now)+0.5)
	payload("ok", "nbf", now)
	payload("not_yet_valid", "nbf", now+1)
	payload("not_yet_valid", "nbf", "x")
	for _, v := range []any{nil, "x", 0, now + 60, now + 61} {
		payload("bad_iat", "iat", v)
	}
	payload("ok", "iat", now+60, "exp", now+61)
	payload("bad_iat", "iat", now+61, "exp", now+62)
	for _, name := range []string{"agent_id", "workspace_id", "session_id", "jti"} {
		for _, v := range []any{nil, "", " \t", 7, "a\x00", "a\u0085", strings.Repeat("x", 257)} {
			payload("bad_claim:"+name, name, v)
		}
		payload("ok", name, strings.Repeat("x", 256))
		payload("ok", name, " x ")
	}
	f(plain, hs(t, header, strings.Replace(with(), `"agent_id":"a"`, `"agent_id":"a\ud800"`, 1)), "bad_claim:agent_id")
	f(plain, hs(t, header, strings.Replace(with(), `"agent_id":"a"`, `"agent_id":"a\ud83d\ude00"`, 1)), "ok")
	payload("bad_claim:agent_id", "agent_id", "system:supervisor")
	payload("ok", "workspace_id", "system:w")
	for _, v := range []any{nil, "worker", "Participant", "", 7} {
		payload("bad_claim:role", "role", v)
	}
	for _, v := range []string{"participant", "coordinator", "auditor", "operator"} {
		payload("ok", "role", v)
	}

	skewed := open(t, Config{ClockSkew: maxClockSkew})
	f(skewed, hs(t, header, with("exp", now-299, "iat", now-400)), "ok")
	f(skewed, hs(t, header, with("exp", now-300, "iat", now-400)), "expired")
	f(skewed, hs(t, header, with("nbf", now+300)), "ok")
	f(skewed, hs(t, header, with("nbf", now+301)), "not_yet_valid")
	short := open(t, Config{MaxTokenTTL: 2 * time.Minute})
	f(short, hs(t, header, with()), "ok")
	f(short, hs(t, header, with("exp", now+61)), "ttl_too_long")
	pinned := open(t, Config{WorkspaceID: "w"})
	f(pinned, hs(t, header, with()), "ok")
	f(pinned, hs(t, header, with("workspace_id", "v")), ErrOutOfScope.Error())
}

func TestClaimsAreVerbatim(t *testing.T) {
	c, err := open(t, Config{}).Verify(hs(t, header, with("agent_id", ` a"é `, "role", "operator")))
	if err != nil || c.Agent != ` a"é ` || c.Workspace != "w" || c.Session != "s" || c.ID != "j" || c.Role != Operator || c.Until() != time.Unix(now+60, 0).UTC() {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestUntil checks times that a clock of nanoseconds does not reach.
func TestUntil(t *testing.T) {
	for expires, want := range map[float64]string{now + 0.5: "2027-01-15T08:00:00.5Z", 1e10: "2286-11-20T17:46:40Z", 1e300: "9999-12-31T23:59:59Z"} {
		if got := (&Claims{Expires: expires}).Until().Format(time.RFC3339Nano); got != want {
			t.Errorf("%g: %s, want %s", expires, got, want)
		}
	}
}

func TestRevocations(t *testing.T) {
	name := file(t, `{"jti":"gone"}`+"\n\n"+`{"workspace_id":"w","agent_id":"old","issued_before":`+fmt.Sprint(now-59)+"}\n")
	v := open(t, Config{RevocationFile: name})
	f := func(want string, pairs ...any) {
		t.Helper()
		if got := reason(v, hs(t, header, with(pairs...))); got != want {
			t.Errorf("%v: %s, want %s", pairs, got, want)
		}
	}
	f("ok")
	f("revoked", "jti", "gone")
	f("revoked", "agent_id", "old")
	f("ok", "agent_id", "old", "iat", now-59)
	f("ok", "agent_id", "old", "workspace_id", "x")

	before := v.generation.Load()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = v.reread()
	}
	write(`{"jti":"j"}`)
	f("revoked") // although it was remembered
	if v.generation.Load() == before {
		t.Error("the generation stays after a change")
	}
	before = v.generation.Load()
	write(`{"jti":"j"}` + "\n")
	for _, bad := range []string{`{"jti":7}`, `{}`, `{"jti":"a","agent_id":"b"}`, `{"workspace_id":"w","agent_id":"a"}`, `x`, strings.Repeat(" ", maxTokenBytes) + `{"jti":"j"}`} {
		write(bad)
		if f("revoked"); v.generation.Load() != before {
			t.Errorf("the generation changed by %.40q", bad)
		}
		if _, err := New(Config{HS256SecretFile: v.cfg.HS256SecretFile, RevocationFile: name}); err == nil {
			t.Errorf("a start accepts %.40q", bad)
		}
	}
}

// TestManyRevocations: a list that grows stays in force, up to its bound.
func TestManyRevocations(t *testing.T) {
	var list strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&list, `{"jti":"5a3f6a0e-4c1b-4e52-9b1f-%012d"}`+"\n", i)
	}
	name := file(t, `{"jti":"other"}`)
	v := open(t, Config{RevocationFile: name})
	if err := os.WriteFile(name, []byte(list.String()+`{"jti":"j"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := v.reread(); err != nil {
		t.Fatal(err)
	}
	if got := reason(v, hs(t, header, with())); got != "revoked" {
		t.Errorf("behind %d bytes: %s", list.Len(), got)
	}
	if err := os.Truncate(name, maxRevocationBytes+1); err != nil {
		t.Fatal(err)
	}
	if err := v.reread(); err == nil || !strings.Contains(err.Error(), "more than 134217728 bytes") {
		t.Errorf("beyond the bound: %v", err)
	}
}

// TestRevocationsAreFollowed changes the file under a running Verifier.
func TestRevocationsAreFollowed(t *testing.T) {
	name := file(t, "")
	v := open(t, Config{RevocationFile: name})
	before := v.generation.Load()
	if err := os.WriteFile(name, []byte(`{"jti":"j"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for v.generation.Load() == before {
		time.Sleep(10 * time.Millisecond)
	}
	if got := reason(v, hs(t, header, with())); got != "revoked" {
		t.Error(got)
	}
}

// TestRevocationsAreReadAgain lets a file become readable without a sign that it has changed, as
// after a change of its owner.
func TestRevocationsAreReadAgain(t *testing.T) {
	name := file(t, "")
	tries := make(chan struct{}, 8)
	v := open(t, Config{RevocationFile: name, Logger: slog.New(slog.NewTextHandler(onWrite(func() { tries <- struct{}{} }), nil))})
	before := v.generation.Load()
	write := func(text string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(name, []byte(text), 0o600), os.Chtimes(name, time.Time{}, atNow())); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"jtx":"j"}`)
	<-tries
	write(`{"jti":"j"}`)
	for end := time.Now().Add(3 * revocationCheck); v.generation.Load() == before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the file is not read again")
		}
	}
}

// onWrite is a writer that does something each time.
type onWrite func()

func (f onWrite) Write(b []byte) (int, error) { f(); return len(b), nil }

func TestCacheIsBounded(t *testing.T) {
	at := atNow()
	v := open(t, Config{Now: func() time.Time { return at }})
	for i := range maxCached {
		v.cache[sha256.Sum256([]byte(fmt.Sprint(i)))] = cached{nil, at.Add(time.Minute)}
	}
	one := hs(t, header, with())
	if got := reason(v, one); got != "ok" || len(v.cache) > maxCached || v.cache[sha256.Sum256([]byte(one))].claims == nil {
		t.Errorf("%s, %d tokens remembered", got, len(v.cache))
	}
	at = at.Add(59 * time.Second)
	if c, _ := v.Verify(one); c != v.cache[sha256.Sum256([]byte(one))].claims {
		t.Error("a remembered token was checked again")
	}
	at = at.Add(time.Second)
	if got := reason(v, one); got != "expired" {
		t.Errorf("remembered beyond its end: %s", got)
	}
}

// pair is a key pair of one kind.
type pair struct {
	private crypto.Signer
	methods []jwt.SigningMethod
}

func pairs(tb testing.TB) map[string]pair {
	tb.Helper()
	r, err := rsa.GenerateKey(rand.Reader, minRSABits)
	if err != nil {
		tb.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string]pair{
		"rsa": {r, []jwt.SigningMethod{jwt.SigningMethodRS256, jwt.SigningMethodRS384, jwt.SigningMethodRS512, jwt.SigningMethodPS256, jwt.SigningMethodPS384, jwt.SigningMethodPS512}},
		"ed":  {ed, []jwt.SigningMethod{jwt.SigningMethodEdDSA}},
	}
	for name, c := range map[string]struct {
		curve  elliptic.Curve
		method jwt.SigningMethod
	}{"p256": {elliptic.P256(), jwt.SigningMethodES256}, "p384": {elliptic.P384(), jwt.SigningMethodES384}, "p521": {elliptic.P521(), jwt.SigningMethodES512}} {
		k, err := ecdsa.GenerateKey(c.curve, rand.Reader)
		if err != nil {
			tb.Fatal(err)
		}
		out[name] = pair{k, []jwt.SigningMethod{c.method}}
	}
	return out
}

func publicPEM(tb testing.TB, public any) string {
	tb.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		tb.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// TestKeysServeTheirFamily: each key verifies the algorithms of its kind, and no other; the text of
// a public key is no shared secret.
func TestKeysServeTheirFamily(t *testing.T) {
	all := pairs(t)
	for name, p := range all {
		text := publicPEM(t, p.private.Public())
		v := open(t, Config{PublicKeyFile: file(t, text)})
		for other, o := range all {
			for _, m := range o.methods {
				want := "bad_algorithm"
				if other == name {
					want = "ok"
				}
				if got := reason(v, signed(t, m, o.private, `{"alg":"`+m.Alg()+`","kid":"ignored"}`, with())); got != want {
					t.Errorf("%s by a key of %s: %s, want %s", m.Alg(), name, got, want)
				}
			}
		}
		if got := reason(v, signed(t, jwt.SigningMethodHS256, []byte(text), header, with())); got != "bad_algorithm" {
			t.Errorf("HS256 by the text of the public key %s: %s", name, got)
		}
	}
}

func TestSourcesThatCannotBeRead(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := publicPEM(t, pairs(t)["ed"].private.Public())
	for name, cfg := range map[string]Config{
		"secret at the limit less one": {HS256SecretFile: file(t, strings.Repeat("x", minSecretBytes-1))},
		"no file":                      {HS256SecretFile: filepath.Join(t.TempDir(), "none")},
		"large":                        {HS256SecretFile: file(t, strings.Repeat("x", maxKeyBytes+1))},
		"no PEM":                       {PublicKeyFile: file(t, "x")},
		"two keys":                     {PublicKeyFile: file(t, good+good)},
		"small RSA key":                {PublicKeyFile: file(t, publicPEM(t, small.Public()))},
		"other curve":                  {PublicKeyFile: file(t, publicPEM(t, p224.Public()))},
		"empty set":                    {JWKSFile: file(t, `{"keys":[]}`)},
		"set of secrets":               {JWKSFile: file(t, `{"keys":[{"kty":"oct","k":"`+enc(secret)+`"}]}`)},
		"no set":                       {JWKSFile: file(t, `[]`)},
		"address":                      {JWKSURL: "ftp://127.0.0.1/x"},
		"far http":                     {JWKSURL: "http://issuer.example/x"},
		"skew":                         {HS256SecretFile: file(t, secret), ClockSkew: maxClockSkew + 1},
		"two sources":                  {HS256SecretFile: file(t, secret), PublicKeyFile: file(t, good)},
		"revocations":                  {HS256SecretFile: file(t, secret), RevocationFile: filepath.Join(t.TempDir(), "none")},
	} {
		if v, err := New(cfg); err == nil {
			v.Close()
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := New(Config{}); !errors.Is(err, ErrNoKeySource) {
		t.Error(err)
	}
	v, err := New(Config{HS256SecretFile: file(t, strings.Repeat("x", minSecretBytes))})
	if err != nil {
		t.Fatal(err)
	}
	v.Close()
}

// jwk is a public key as a member of a key set.
func jwk(tb testing.TB, public any, id, alg, use string) json.RawMessage {
	tb.Helper()
	k, err := jwkset.NewJWKFromKey(public, jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: id, ALG: jwkset.ALG(alg), USE: jwkset.USE(use)}})
	if err != nil {
		tb.Fatal(err)
	}
	text, err := json.Marshal(k.Marshal())
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func set(keys ...json.RawMessage) string {
	text, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestKeySets(t *testing.T) {
	all := pairs(t)
	ed, p256 := all["ed"].private, all["p256"].private
	edToken := func(kid string) string {
		return signed(t, jwt.SigningMethodEdDSA, ed, `{"alg":"EdDSA"`+kid+`}`, with())
	}
	f := func(text, token, want string) {
		t.Helper()
		if got := reason(open(t, Config{JWKSFile: file(t, text)}), token); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	one := jwk(t, ed.Public(), "k1", "", "")
	f(set(one), edToken(`,"kid":"k1"`), "ok")
	f(set(one), edToken(`,"kid":"k2"`), "unknown_key")
	f(set(one), edToken(`,"kid":7`), "bad_header")
	f(set(jwk(t, ed.Public(), "", "", "")), edToken(`,"kid":"k1"`), "ok") // no key of the set is named
	f(set(jwk(t, ed.Public(), "", "", ""), jwk(t, pairs(t)["ed"].private.Public(), "", "", "")), edToken(`,"kid":"k1"`), "unknown_key")
	f(set(jwk(t, ed.Public(), "", "", ""), jwk(t, p256.Public(), "k2", "", "")), edToken(`,"kid":"k1"`), "unknown_key")
	rfc9864 := signed(t, jwt.SigningMethodEdDSA, ed, `{"alg":"Ed25519","kid":"k1"}`, with())
	f(set(one), rfc9864, "ok")
	f(set(jwk(t, ed.Public(), "k1", "EdDSA", "")), rfc9864, "ok")
	named := json.RawMessage(strings.Replace(string(one), "{", `{"alg":"Ed25519",`, 1))
	f(set(named), rfc9864, "ok")
	f(set(named), edToken(`,"kid":"k1"`), "ok")
	f(set(jwk(t, p256.Public(), "k1", "", "")), rfc9864, "bad_algorithm")
	for ops, want := range map[string]string{`["verify"]`: "ok", `["sign","verify"]`: "ok", `["encrypt"]`: "bad_algorithm", `[]`: "bad_algorithm", `null`: "ok"} {
		f(set(json.RawMessage(strings.Replace(string(one), "{", `{"key_ops":`+ops+`,`, 1))), edToken(`,"kid":"k1"`), want)
	}
	f(set(one), edToken(``), "ok")
	f(set(one, jwk(t, p256.Public(), "k2", "", "")), edToken(``), "ok")
	f(set(one, jwk(t, pairs(t)["ed"].private.Public(), "k2", "", "")), edToken(``), "unknown_key")
	f(set(jwk(t, ed.Public(), "k1", "EdDSA", "sig")), edToken(`,"kid":"k1"`), "ok")
	f(set(jwk(t, ed.Public(), "k1", "EdDSA", "enc")), edToken(`,"kid":"k1"`), "bad_algorithm")
	f(set(jwk(t, p256.Public(), "k1", "", "")), edToken(`,"kid":"k1"`), "bad_algorithm")
	f(set(jwk(t, all["rsa"].private.Public(), "k1", "RS512", "")), signed(t, jwt.SigningMethodRS256, all["rsa"].private, `{"alg":"RS256","kid":"k1"}`, with()), "bad_algorithm")
	f(set(json.RawMessage(`{"kty":"new","kid":"x"}`), json.RawMessage(`7`), one), edToken(`,"kid":"k1"`), "ok")
	f(set(one), signed(t, jwt.SigningMethodHS256, []byte(secret), header, with()), "bad_algorithm")
}

// TestKeySetOverHTTP follows a key set through a new key, a failure, and the end of what is kept.
func TestKeySetOverHTTP(t *testing.T) {
	var at atomic.Int64
	var text atomic.Pointer[string]
	var asked atomic.Int32
	at.Store(now)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch body := text.Load(); {
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "http://127.0.0.1:1/keys", http.StatusFound)
		case r.URL.Path == "/near":
			http.Redirect(w, r, "/keys", http.StatusFound)
		case body == nil:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			_, _ = w.Write([]byte(*body))
		}
	}))
	defer s.Close()
	first, second := pairs(t)["ed"].private, pairs(t)["ed"].private
	by := func(k crypto.Signer, id string) string {
		return signed(t, jwt.SigningMethodEdDSA, k, `{"alg":"EdDSA","kid":"`+id+`"}`, with("exp", now+1_000_000))
	}
	publish := func(body string) {
		if text.Store(&body); body == "" {
			text.Store(nil)
		}
	}
	v := open(t, Config{JWKSURL: s.URL + "/keys", Now: func() time.Time { return time.Unix(at.Load(), 0) }})
	f := func(token, want string, requests int32) {
		t.Helper()
		if got := reason(v, token); got != want || asked.Load() != requests {
			t.Errorf("%s after %d requests, want %s after %d", got, asked.Load(), want, requests)
		}
	}
	f(by(first, "k1"), "unavailable", 1) // no keys at all, and the pause is not over
	f(by(first, "k1"), "unavailable", 1)
	publish(set(jwk(t, first.Public(), "k1", "", "")))
	at.Add(1)
	f(by(first, "k1"), "ok", 2)
	publish(set(jwk(t, second.Public(), "k2", "", "")))
	at.Add(10)
	f(by(second, "k2"), "unknown_key, again in 20s", 2)
	at.Add(20)
	if _, err := v.VerifyKnown(by(second, "k2")); err == nil || asked.Load() != 2 {
		t.Errorf("VerifyKnown: %v after %d requests", err, asked.Load())
	}
	f(by(second, "k2"), "ok", 3)
	if _, err := v.VerifyKnown(by(second, "k2")); err != nil {
		t.Error(err)
	}
	f(by(first, "k1"), "unknown_key, again in 30s", 3)
	publish("")
	at.Add(30)
	f(by(first, "k1"), "unavailable", 4) // its key may be in the set that cannot be read
	f(by(second, "k2"), "ok", 4)
	at.Add(3600 - 30) // from here on the background may request the set, too
	if got := reason(v, by(second, "k2")); got != "ok" {
		t.Error(got)
	}
	generation := v.Generation()
	at.Add(61)
	if got := reason(v, by(second, "k2")); got != "unavailable" {
		t.Error(got)
	}
	if v.Generation() == generation {
		t.Error("claims stay in force without keys")
	}

	publish(set(jwk(t, first.Public(), "k1", "", "")))
	for path, want := range map[string]string{"/moved": "unavailable", "/near": "ok"} {
		if got := reason(open(t, Config{JWKSURL: s.URL + path}), signed(t, jwt.SigningMethodEdDSA, first, `{"alg":"EdDSA"}`, with())); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	publish(set(jwk(t, first.Public(), "k1", "", "")) + strings.Repeat(" ", maxKeyBytes))
	if got := reason(open(t, Config{JWKSURL: s.URL}), by(first, "k1")); got != "unavailable" {
		t.Errorf("a set that is too large: %s", got)
	}
}

// TestHangingKeySet: a request that hangs delays neither New nor the requests after it.
func TestHangingKeySet(t *testing.T) {
	private := pairs(t)["ed"].private
	first, hang, asked := make(chan *http.Request, 1), make(chan struct{}), atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 {
			_, _ = w.Write([]byte(set(jwk(t, private.Public(), "k", "", ""))))
			return
		}
		first <- r
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(hang)
	var at atomic.Int64
	at.Store(now)
	v := open(t, Config{JWKSURL: s.URL, Now: func() time.Time { return time.Unix(at.Load(), 0) }})
	if r := <-first; r.Context().Err() != nil {
		t.Error("New waited for the key set")
	}
	if v.hasKeys() {
		t.Error("there are keys")
	}
	at.Add(1)
	if got := reason(v, signed(t, jwt.SigningMethodEdDSA, private, `{"alg":"EdDSA","kid":"k"}`, with())); got != "ok" ||
		!v.hasKeys() {
		t.Error(got)
	}
}

// TestKeySetBackoff: in the background the pause doubles with each failure.
func TestKeySetBackoff(t *testing.T) {
	var at atomic.Int64
	at.Store(now)
	v := open(t, Config{JWKSURL: "http://127.0.0.1:1/none", Now: func() time.Time { return time.Unix(at.Load(), 0) }})
	settle := func() {
		for outcome := v.ask(true); outcome != nil; outcome = v.ask(true) {
			<-outcome
		}
	}
	settle()
	last := func() time.Time {
		settle()
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.asked
	}
	for _, pause := range []int64{1, 2, 4, 8, 16, 30, 30, 30} {
		asked := last()
		at.Add(pause - 1)
		if !last().Equal(asked) {
			t.Errorf("requested before %d s", pause)
		}
		at.Add(1)
		if last().Equal(asked) {
			t.Errorf("not requested after %d s", pause)
		}
	}
}

func TestSign(t *testing.T) {
	private, public, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	c := &Claims{Agent: "a", Workspace: "w", Session: "s", ID: "j", Role: Auditor, Issued: now, Expires: now + 60}
	token, err := Sign(private, c, "i", DefaultAudience)
	if err != nil {
		t.Fatal(err)
	}
	got, err := open(t, Config{PublicKeyFile: file(t, string(public))}).Verify(token)
	if err != nil || *got != *c {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Sign(public, c, "i", "a"); err == nil {
		t.Error("signed with a public key")
	}
	if c.Agent = " "; true {
		if _, err := Sign(private, c, "i", "a"); err == nil {
			t.Error("signed for a blank agent")
		}
	}
}

// FuzzVerify: no token panics, and only what the secret has signed is accepted.
func FuzzVerify(f *testing.F) {
	v := open(f, Config{})
	for _, token := range []string{hs(f, header, with()), hs(f, `{"alg":"none"}`, with()), enc(header) + "..", "a.b.c", hs(f, header, with("aud", []string{"x"}))} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		c, err := v.Verify(token)
		if (c == nil) == (err == nil) {
			t.Fatalf("%v, %v", c, err)
		}
		if err != nil {
			return
		}
		cut := strings.LastIndexByte(token, '.')
		sig, _ := base64.RawURLEncoding.DecodeString(token[cut+1:])
		if jwt.SigningMethodHS256.Verify(token[:cut], sig, []byte(secret)) != nil {
			t.Fatal("accepted without the secret")
		}
	})
}

// FuzzWorkspace: the workspace of a token that is accepted is known without its verification.
func FuzzWorkspace(f *testing.F) {
	v := open(f, Config{})
	whole := with()
	for _, payload := range []string{whole, strings.Replace(whole, "workspace_id", `work\u0073pace_id`, 1), "{}", "", `{"workspace_id":"a","workspace_id":"b"}`,
		strings.Replace(whole, `"workspace_id":"`, `"workspace_id":"\ud83d\ude00 \u00e9`, 1), strings.Replace(whole, `"workspace_id":"`, `"workspace_id":"\ud83d`, 1)} {
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		token := hs(t, header, payload)
		if c, err := v.Verify(token); err == nil && Workspace(token) != c.Workspace {
			t.Fatalf("%q of %q, whose claims have %q", Workspace(token), payload, c.Workspace)
		}
	})
}

// TestWorkspace has tokens without a workspace, and one that is forged.
func TestWorkspace(t *testing.T) {
	good := hs(t, header, with())
	for token, want := range map[string]string{
		good: "w", good[:len(good)-3] + "AAA": "w", "a." + enc(`{"workspace_id":"w"}`): "w", "": "", "a": "", "a.b": "", "..": "", "a." + enc(`{"workspace_id":1}`) + ".c": "",
		"a." + enc(`{"workspace_id":" "}`) + ".c": "", "a." + enc(`{"workspace_id":"`+strings.Repeat("w", maxClaimBytes)+`"}`) + ".c": strings.Repeat("w", maxClaimBytes),
		"a." + enc(`{"workspace_id":"`+strings.Repeat("w", maxClaimBytes+1)+`"}`) + ".c":                                "",
		"." + enc(`{"workspace_id":"w"}`) + "." + strings.Repeat("s", maxTokenBytes-2-len(enc(`{"workspace_id":"w"}`))): "w",
		"." + enc(`{"workspace_id":"w"}`) + "." + strings.Repeat("s", maxTokenBytes-1-len(enc(`{"workspace_id":"w"}`))): "",
	} {
		if got := Workspace(token); got != want {
			t.Errorf("%.60q: %q, want %q", token, got, want)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	v := open(b, Config{})
	token := hs(b, header, with())
	b.Run("remembered", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = v.Verify(token)
		}
	})
	b.Run("checked", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = v.check(token, atNow(), true)
		}
	})
}
