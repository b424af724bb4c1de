package doctor

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"trunkline/handlers/threads/token"
)

func TestThreadKeys(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	keys := func(args ...string) *Report {
		t.Helper()
		return r.run(append([]string{"--set", "threads.issuer=i", "--set", "threads.listen_addr=", "--set", "threads.lines_addr="}, args...)...)
	}
	r.want(r.run(), "threads.keys", "threads", Skipped, "agent threads are closed")
	_, public, err := token.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, filepath.Join(dir, "public.pem"), string(public))
	r.want(keys("--set", "threads.public_key_file="+file), "threads.keys", "threads.public_key_file", OK, "can be used")
	r.want(keys("--set", "threads.public_key_file="+write(t, filepath.Join(dir, "junk"), "junk")), "threads.keys", "threads.public_key_file", Failed, "want one PEM block")
	r.want(keys("--set", "threads.hs256_secret_file="+write(t, filepath.Join(dir, "short"), "short")), "threads.keys", "threads.hs256_secret_file", Failed, "short")
	r.want(keys("--set", "threads.jwks_file="+filepath.Join(dir, "missing")), "threads.keys", "threads.jwks_file", Failed, "no such file")
}

// keySet is a JSON Web Key Set with one key, of RFC 8037.
const keySet = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`

func TestKeySetsOfOthers(t *testing.T) {
	r := newRig(t)
	serve := func(text string) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	f := func(url string, result Result, evidence string) {
		t.Helper()
		r.want(r.run("--set", "threads.issuer=i", "--set", "threads.listen_addr=", "--set", "threads.lines_addr=", "--set", "threads.jwks_url="+url), "threads.keys", "threads.jwks_url", result, evidence)
	}
	f(serve(keySet), OK, "can be used")
	f(serve(`{"keys":[]}`), Failed, "no usable key came from")
	f("http://127.0.0.1:1", Failed, "no usable key came from")
}

func TestProjectSecrets(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	const key = "exacta.auth_token_file"
	r.want(r.run(), "exacta.secrets", key, Skipped, "no file")
	r.want(r.run("--set", key+"="+write(t, filepath.Join(dir, "good"), "0123456789abcdef")), "exacta.secrets", key, OK, "can be read")
	r.want(r.run("--set", key+"="+write(t, filepath.Join(dir, "short"), "0123456789abcde")), "exacta.secrets", key, Failed, "a token of 16 to")
	r.want(r.run("--set", key+"="+filepath.Join(dir, "missing")), "exacta.secrets", key, Failed, "cannot read "+key)
}

func TestConsoleTokens(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	const key = "admin.console_token_file"
	f := func(result Result, evidence string, args ...string) {
		t.Helper()
		r.want(r.run(append([]string{"--admin-listen", "127.0.0.1:0"}, args...)...), "console.tokens", key, result, evidence)
	}
	f(Skipped, "no file with a token is named: 127.0.0.1:0 is open to everybody on this machine")
	f(Warning, "admin.listen_addr 192.0.2.1:0 is open to anybody who reaches it", "--admin-listen", "192.0.2.1:0", "--set",
		"admin.insecure_bind=true")
	f(OK, "can be read: 127.0.0.1:0 is closed without a token, but for probes and /metrics", "--set",
		"admin.public_metrics=true", "--set", key+"="+write(t, filepath.Join(dir, "good"), "0123456789abcdef"))
	f(Failed, "admin.console_operator_token_file", "--set", "admin.console_operator_token_file="+write(t, filepath.Join(dir, "short"), "0123456789abcde"))
	f(Failed, "no such file", "--set", key+"="+filepath.Join(dir, "missing"))
}
