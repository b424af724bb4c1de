package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"trunkline/engine/projects/secret"
	"trunkline/fuzz/rounds"
)

// placeholders are shapes of public documentation and source in the place of a credential.
var placeholders = []string{
	"Authorization: Bearer TOKEN", "Authorization: Bearer TOKEN,", "Authorization: Bearer YOUR_TOKEN_HERE'", "Authorization: Bearer ACCESS_TOKEN_1",
	"Authorization: Bearer $TOKEN\"", "Authorization: Bearer ${TOKEN}", "Authorization: Bearer $(cat token)", "authorization: bearer ${{ secrets.GITHUB_TOKEN }}",
	"Authorization: Bearer $env:OPENAI_API_KEY\"", "Authorization: Bearer $CLOUDFLARE_API_TOKEN`.", "Authorization: Bearer <token>`", "Authorization: Bearer <your access token>",
	"Authorization: Bearer <auth-token>\")", "Authorization: Basic <base64>", "Authorization: Bearer {ACCESS_TOKEN}'", "Authorization: Bearer {{accessToken}}",
	"Authorization: Bearer {{ token }}", "Authorization: Basic {}\", encoded", "Authorization: Bearer %s\\r\\nContent-Type: x", "Authorization: Bearer %(token)s",
	"Authorization: Bearer [REDACTED]", "Authorization: Bearer [token]", "Authorization: Bearer ***", "Authorization: Bearer ...", "authorization: basic ...'", "Authorization: Bearer …",
	"Authorization: Bearer xxx", "Authorization: Bearer XXXXXXXX", "Authorization: Bearer xxxx-xxxx", "Authorization: Bearer my-token\"", "Authorization: Bearer your-api-key-here",
	"Authorization: Bearer yourAccessToken", "Authorization: Bearer example", "Authorization: Bearer example-token-1", "Authorization: Bearer test-token",
	`"Authorization: Bearer " + "YOUR_TOKEN_HERE"`, `-H "Authorization: Bearer " "https://host/path"`,
	`"Authorization: Bearer " + "%s"`,
	"\"Authorization: Basic \" + auth", "\"Authorization: Basic \"+ spendkey", "\"Authorization: Bearer \"+token+\"\\r\\n\"", "HasPrefix(h, \"Authorization: Basic \")",
	"\"Authorization: Basic \" . $auth", "'Authorization: Bearer ', token", `\"Authorization: Bearer \" . $x`,
	"sk-xxxxxxxxxxxxxxxxxxxxxxxx", "sk-your-openai-api-key-here", "sk-ant-api03-xxxxxxxxxxxxxxxx", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxx", "github_pat_xxxxxxxxxxxxxxxxxxxxxx",
	"github_pat_YOUR_PERSONAL_ACCESS_TOKEN", "xoxb-your-token-here", "xoxb-xxxxxxxxxx", "AKIAIOSFODNN7EXAMPLE", "AKIAXXXXXXXXXXXXXXXX", "eyJxxxxxxxx.xxxxxxxx.xxxxxxxx",
}

// credentials are shapes of credentials, and none of them is valid anywhere.
var credentials = []string{
	`"Authorization: Bearer " + "h480djs93hd8"`, `"Authorization: Bearer " "h480djs93hd8"`,
	"\"Authorization: Bearer \" +\n\t\"h480djs93hd8\")", "+\"Authorization: Bearer \" +\n+\t\"h480djs93hd8\"",
	`'Authorization: Basic ' . 'YWxhZGRpbjpvcGVuc2VzYW1l'`,
	"Authorization: Bearer x", "Authorization: Bearer abc", "Authorization: Bearer mF_9.B5f-4.1JqM", "Authorization: Bearer h480djs93hd8", "Authorization: Bearer SlAV32hkKG",
	"Authorization: Basic YWxhZGRpbjpvcGVuc2VzYW1l", "Authorization: Basic dGhpc2lzYWxvbmdzdHJpbmc=", "authorization:basic eA==", "Authorization: Basic user:password",
	"Authorization: Bearer \"mF_9.B5f-4.1JqM\"", "Authorization: Bearer '9f86d081884c7d659a2feaa0c55ad015'", "Authorization: Bearer <9f86d081884c7d659a2feaa0c55ad015>",
	"Authorization: Bearer ${TOKEN:-9f86d081884c7d65}", "Authorization: Bearer TOKEN:9f86d081884c7d65", "Authorization: Bearer $TOKEN-9f86d081884c7d65", "Authorization: Bearer TOKEN9f86d081884c7d65",
	"Authorization: Bearer JBSWY3DPEHPK3PXP", "Authorization: Bearer KRUGS4ZANFZSAYJA", "Authorization: Bearer {\"t\":\"9f86d081\"}", "Authorization: Bearer realsecretvalue\",\"host\":\"example.com\"",
	"Authorization: Bearer <token>9f86d081884c7d65", "Authorization: Bearer xxx9f86d081884c7d65", "Authorization: Bearer TOKEN Authorization: Bearer h480djs93hd8",
	"Authorization: Bearer Authorization: Bearer h480djs93hd8", "Authorization: Bearer $2a$10$N9qo8uLOickgx2ZMRZoMye", "Authorization: Bearer correct-horse-battery-staple",
	"sk-abcdefghij_klmnopqrst", "sk-aaaaaaaaaaaaaaaaaaaaaaaa", "sk-proj-9f86d081884c7d659a2feaa0", "sk-xxx9f86d081884c7d659a2feaa0", "ghp_abcdefghij0123456789", "ghp_0123456789abcdefghijABCDEFGHIJ012345",
	"github_pat_11ABCDEFG0abcdefghijkl", "xoxb-0123456789", "xoxb-123456789012-abcdefABCDEF", "AKIA0123456789ABCDEF", "AKIAAAAAAAAAAAAAAAAA", "AKIAJKLMNOPQRSTUVWXY",
	"eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK", "-----BEGIN PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----",
	"Authorization: Bearer <token> sk-abcdefghij_klmnopqrst", "sk-xxxxxxxxxxxxxxxxxxxxxxxx sk-9f86d081884c7d659a2feaa0",
}

// TestPlaceholders: what stands for a credential is none, and is redacted all the same.
func TestPlaceholders(t *testing.T) {
	for _, text := range placeholders {
		if secret.Find([]byte("a " + text + "\nb")) {
			t.Errorf("%s is refused", text)
		}
		if !secret.Leaks([]byte("a " + text + "\nb")) {
			t.Errorf("%s is no match of any pattern", text)
		}
	}
	for _, text := range credentials {
		if !secret.Find([]byte("a " + text + "\nb")) {
			t.Errorf("%s is let through", text)
		}
		for _, p := range placeholders {
			if both := p + "\n" + text + "\n" + p; !secret.Find([]byte(both)) {
				t.Errorf("%q is let through", both)
			}
		}
	}
}

// TestLongPlaceholders: each match within a long value is looked at, and none of them reads all of
// the value.
func TestLongPlaceholders(t *testing.T) {
	for _, tc := range []struct {
		value string
		want  bool
	}{
		{strings.Repeat("sk-", 83) + "example", false},
		{strings.Repeat("sk-", 84) + "-example", true}, // behind the first prefix: 257 bytes
		{strings.Repeat("sk-", 30_000) + "example", true},
		{strings.Repeat("xoxb-", 20_000) + "example", true},
		{strings.Repeat("eyJ-", 20_000) + ".example-.example-", true},
	} {
		if got := secret.Find([]byte(tc.value)); got != tc.want {
			t.Errorf("%.20q... of %d bytes: %v", tc.value, len(tc.value), got)
		}
	}
}

// TestRandomCredentials has values of the alphabets that servers use.
func TestRandomCredentials(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	pick := func(alphabet string, n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(alphabet[r.IntN(len(alphabet))])
		}
		return b.String()
	}
	for range rounds.Of(1000, 10000) {
		raw := []byte(pick(base62, 12+r.IntN(40)))
		for _, text := range []string{
			"Authorization: Bearer " + hex.EncodeToString(raw), "Authorization: Basic " + base64.StdEncoding.EncodeToString(raw), "Authorization: Bearer " + string(raw),
			"Authorization: Bearer \"" + pick(base62+"-._~+/", 16+r.IntN(30)) + "\"", "sk-" + pick(base62+"_-", 20+r.IntN(30)), "ghp_" + pick(base62, 36), "github_pat_" + pick(base62+"_", 60),
			"xoxb-" + pick("0123456789", 12) + "-" + pick(base62, 24), "AKIA" + pick(base62[:36], 16), "Authorization: Bearer <" + pick(base62, 24) + ">", "Authorization: Bearer " + pick("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16),
		} {
			if !secret.Find([]byte(text)) {
				t.Fatalf("%s is let through", text)
			}
		}
	}
}

// TestSecretsOfAHistory goes through the changes of a repository, that of $SECRET_HISTORY, and
// prints how many would be refused.
func TestSecretsOfAHistory(t *testing.T) {
	dir := os.Getenv("SECRET_HISTORY")
	if dir == "" {
		t.Skip("SECRET_HISTORY names no repository")
	}
	cmd := exec.Command("git", "-C", dir, "log", "-p", "--no-color", "--no-merges", "--format=")
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	m, files, before, after := newModel(), 0, 0, 0
	for change := range bytes.SplitSeq(text, []byte("\ndiff --git ")) {
		files++
		if !m.high.Match(change) {
			continue
		}
		before++
		if secret.Find(change) {
			after++
			name, _, _ := bytes.Cut(change, []byte("\n"))
			t.Logf("refused: %s: %.150q", name, m.high.FindAll(change, 5))
		}
	}
	t.Logf("%d changes of files, %d refused by the patterns alone, %d now", files, before, after)
}
