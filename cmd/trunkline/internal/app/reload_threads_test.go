package app

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"trunkline/handlers/threads/token"
)

// issuer makes tokens for agent threads.
type issuer struct {
	t               *testing.T
	private, public []byte
	file, set       string // with the public key: PEM, and a key set
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	private, public, err := token.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(public)
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	set := `{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","kid":"k","x":"` + base64.RawURLEncoding.EncodeToString(key.(ed25519.PublicKey)) + `"}]}`
	return &issuer{t, private, public, fileOf(t, public), fileOf(t, []byte(set))}
}

// fileOf returns a new file with this text.
func fileOf(t *testing.T, text []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// token signs one for an hour.
func (is *issuer) token(id, audience string) string {
	is.t.Helper()
	now := float64(time.Now().Unix())
	text, err := token.Sign(is.private, &token.Claims{Agent: "lead", Workspace: "wk", Session: "s", ID: id, Role: token.Coordinator, Issued: now, Expires: now + 3600}, "i", audience)
	if err != nil {
		is.t.Fatal(err)
	}
	return text
}

// good is a token that is taken unless the settings are special.
func (is *issuer) good() string { return is.token("j", token.DefaultAudience) }

func startThreads(t *testing.T, is *issuer, set ...string) *reloadable {
	t.Helper()
	return startReloadable(t, append([]string{"threads.public_key_file=" + is.file, "threads.issuer=i", "threads.listen_addr=127.0.0.1:0", "threads.lines_addr=127.0.0.1:0",
		"threads.supervisor_mode=off"}, set...)...)
}

// ask calls a method of agent threads over HTTP, or what path names.
func (r *reloadable) ask(bearer, path, body string) (status int, answer string) {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+r.addr("threads http")+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// knows checks whether a token is taken, shown by the status of a question.
func (r *reloadable) knows(why, bearer string, want int) {
	r.t.Helper()
	if status, body := r.ask(bearer, "/v1/get_thread", `{"thread_id":"th_none"}`); status != want {
		r.t.Errorf("%s: %d %s, want %d", why, status, body, want)
	}
}

const (
	taken   = http.StatusNotFound // there is no such thread
	unknown = http.StatusUnauthorized
)

func lookAtTokens(t *testing.T) {
	a, b := newIssuer(t), newIssuer(t)
	r := startThreads(t, a, "threads.failed_auth_per_10s=1000")
	r.knows("at the start", a.good(), taken)
	r.knows("at the start", b.good(), unknown)
	lines := r.line("threads lines")
	const ping = `{"id":"2","method":"get_thread","params":{"thread_id":"th_none"}}`
	lines.want(`{"id":"1","method":"auth","params":{"protocol":"threads/1","token":"`+a.good()+`"}}`, `"ok":true`)
	lines.want(ping, "NOT_FOUND")

	r.must("threads.public_key_file=" + b.file)
	r.knows("another file", b.good(), taken)
	r.knows("another file", a.good(), unknown)
	lines.want(ping, "UNAUTHORIZED")

	if err := os.WriteFile(b.file, a.public, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := r.reload(); !out.OK || !slices.Equal(out.Changed, []string{"threads.public_key_file"}) {
		t.Errorf("%+v", out)
	}
	r.knows("another content", a.good(), taken)

	r.must("threads.audience=other")
	r.knows("another audience", a.good(), unknown)
	r.knows("another audience", a.token("j", "other"), taken)
	r.must("threads.audience=" + token.DefaultAudience)

	r.must("threads.max_token_ttl_secs=60")
	r.knows("a short life", a.good(), unknown)
	r.must("threads.max_token_ttl_secs=0")

	r.must("threads.revocation_file=" + fileOf(t, []byte(`{"jti":"gone"}`+"\n")))
	r.knows("revoked", a.token("gone", token.DefaultAudience), unknown)
	r.knows("not revoked", a.good(), taken)

	r.must("threads.workspace_id=elsewhere")
	r.knows("another workspace", a.good(), http.StatusForbidden)
	r.must("threads.workspace_id=wk")
	r.knows("its workspace", a.good(), taken)
	lookAtSources(r, a, b)
}

// lookAtSources goes through the other sources of keys.
func lookAtSources(r *reloadable, a, b *issuer) {
	t := r.t
	r.must("threads.jwks_file="+b.set, "threads.public_key_file=")
	r.knows("a key set", b.good(), taken)

	secret := strings.Repeat("s", 32)
	r.must("threads.jwks_file=", "threads.hs256_secret_file="+fileOf(t, []byte(secret)))
	now := time.Now().Unix()
	shared, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"iss": "i", "aud": token.DefaultAudience, "iat": now, "exp": now + 60,
		"agent_id": "lead", "workspace_id": "wk", "session_id": "s", "jti": "j", "role": "coordinator"}).SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	r.knows("a shared secret", shared, taken)
	r.knows("a shared secret", b.good(), unknown)

	out := r.reload("threads.jwks_url=http://127.0.0.1:1/none", "threads.hs256_secret_file=", "threads.max_connections=7")
	if out.OK || !strings.Contains(out.Error, "threads.jwks_url") {
		t.Errorf("%+v", out)
	}
	r.knows("a key set that cannot be read", shared, taken)

	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text, _ := os.ReadFile(a.set)
		_, _ = w.Write(text)
	}))
	defer keys.Close()
	r.must("threads.jwks_url="+keys.URL, "threads.hs256_secret_file=")
	r.knows("a key set over HTTP", a.good(), taken)
	if out := r.reload("threads.jwks_url="); out.OK || !strings.Contains(out.Error, "there is no key source") {
		t.Errorf("without keys agent threads would be closed: %+v", out)
	}
	r.knows("the last key source stays", a.good(), taken)
}

func lookAtRates(t *testing.T) {
	is := newIssuer(t)
	r := startThreads(t, is)
	_, created := r.ask(is.good(), "/v1/create_thread", `{"workspace_id":"wk","title":"t","type":"workflow","participants":["lead"]}`)
	id := created[strings.Index(created, `"th_`)+1:]
	id = id[:strings.IndexByte(id, '"')]
	post := func(why string, want int) {
		t.Helper()
		if status, body := r.ask(is.good(), "/v1/post_message", fmt.Sprintf(`{"thread_id":%q,"schema_version":1,"kind":"chat","body":"b"}`, id)); status != want {
			t.Errorf("%s: %d %s, want %d", why, status, body, want)
		}
	}
	for _, key := range []string{"threads.rate_post_per_agent_per_minute", "threads.rate_post_per_thread_per_minute"} {
		r.must(key + "=1")
		post(key, http.StatusOK)
		post(key, http.StatusTooManyRequests)
		r.must(key + "=0")
		post(key, http.StatusOK)
	}
	call := func(limited bool) {
		t.Helper()
		_, body := r.ask(is.good(), "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_thread","arguments":{"thread_id":"th_none"}}}`)
		if strings.Contains(body, "RATE_LIMITED") != limited {
			t.Errorf("%s, want it limited: %v", body, limited)
		}
	}
	r.must("threads.rate_mcp_calls_per_agent_per_minute=1")
	call(false)
	call(true)
}

func lookAtFailures(t *testing.T) {
	r := startThreads(t, newIssuer(t), "threads.failed_auth_per_10s=1")
	r.knows("the first", "x", unknown)
	r.knows("one too many", "x", http.StatusTooManyRequests)
	r.must("threads.failed_auth_per_10s=1000")
	r.knows("more are allowed", "x", unknown)
}

func lookAtThreadConnections(t *testing.T) {
	is := newIssuer(t)
	r := startThreads(t, is, "threads.max_connections=1")
	auth := `{"id":"1","method":"auth","params":{"protocol":"threads/1","token":"` + is.good() + `"}}`
	r.line("threads lines").want(auth, `"ok":true`)
	r.line("threads lines").want("", "too many connections")
	held := r.line("threads http")
	fmt.Fprintf(held, "POST /v1/get_thread HTTP/1.1\r\nHost: x\r\n\r\n")
	if status, _ := readAnswer(t, held.in); status == 0 {
		t.Fatal("no answer")
	}
	answered := make(chan struct{})
	go func() {
		r.knows("beside another connection", is.good(), taken)
		close(answered)
	}()
	r.must("threads.max_connections=2")
	r.line("threads lines").want(auth, `"ok":true`)
	<-answered
}
