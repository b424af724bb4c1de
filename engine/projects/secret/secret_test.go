package secret_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"trunkline/engine/projects/secret"
	"trunkline/fuzz/rounds"
)

// n returns a text of n bytes of s.
func n(s string, n int) string { return strings.Repeat(s, n/len(s)+1)[:n] }

// TestFind has each pattern of high confidence of exacta §6.6 at its limit and one below.
func TestFind(t *testing.T) {
	f := func(text string, want bool) {
		t.Helper()
		for _, around := range []string{"%", "x: %\n", "\"%\"", "(%)"} {
			whole := strings.ReplaceAll(around, "%", text)
			if got := secret.Find([]byte(whole)); got != want {
				t.Errorf("Find(%q) = %v", whole, got)
			}
		}
	}
	f("", false)
	f("Append \"Bye.\" to README.md; the token is secret", false)
	f("-----BEGIN PRIVATE KEY-----", true)
	f("-----BEGIN RSA PRIVATE KEY-----", true)
	f("x-----BEGIN PRIVATE KEY-----x", true)
	f("-----BEGIN rsa PRIVATE KEY-----", false)
	f("-----BEGIN PUBLIC KEY-----", false)
	f("-----BEGIN RSA1 PRIVATE KEY-----", false)
	f("sk-"+n("a1_-", 20), true)
	f("sk-"+n("a1_-", 19), false)
	f("ask-"+n("a", 20), false)
	f("SK-"+n("a", 20), false)
	f("task-sk-"+n("a", 20), true)
	for _, c := range "pousr" {
		f("gh"+string(c)+"_"+n("aZ9", 20), true)
		f("gh"+string(c)+"_"+n("aZ9", 19), false)
	}
	f("gha_"+n("a", 20), false)
	f("_ghp_"+n("a", 20), false)
	f("ghp_"+n("a", 19)+"_", false)
	f("github_pat_"+n("a_1", 20), true)
	f("github_pat_"+n("a_1", 19), false)
	for _, c := range "abprs" {
		f("xox"+string(c)+"-"+n("a1-", 10), true)
		f("xox"+string(c)+"-"+n("a1-", 9), false)
	}
	f("xoxc-"+n("a", 10), false)
	f("AKIA"+n("A1", 16), true)
	f("AKIA"+n("A1", 15), false)
	f("AKIA"+n("A1", 17), false)
	f("AKIA"+n("A1", 15)+"a", false)
	f("AKIA"+n("A1", 16)+"-", true)
	f("eyJ"+n("a-_", 8)+"."+n("b", 8)+"."+n("c", 8), true)
	f("eyJ"+n("a", 7)+"."+n("b", 8)+"."+n("c", 8), false)
	f("eyJ"+n("a", 8)+"."+n("b", 7)+"."+n("c", 8), false)
	f("eyJ"+n("a", 8)+"."+n("b", 8)+"."+n("c", 7), false)
	f("Authorization: Bearer x", true)
	f("AUTHORIZATION:basic\t\tx", true)
	f("authorization:\n bearer\n x", true)
	f("xauthorization: basic x", false)
	f("authorization: digest x", false)
	f("authorization basic x", false)
}

// TestRedact has each pattern of exacta §6.6, and what stands around a match.
func TestRedact(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := string(secret.Redact([]byte("kept "), []byte(text))); got != "kept "+want {
			t.Errorf("Redact(%q) = %q; want %q", text, got, "kept "+want)
		}
		if leaks := secret.Leaks([]byte(text)); leaks != (text != want) {
			t.Errorf("Leaks(%q) = %v", text, leaks)
		}
	}
	const r = secret.Redacted
	f("", "")
	f("project opened; markers: .exacta, go.mod, Makefile", "project opened; markers: .exacta, go.mod, Makefile")
	f("a sk-"+n("x", 30)+" b", "a "+r+" b")
	f("-----BEGIN EC PRIVATE KEY-----\nabc", r+"\nabc")
	f("GET / Cookie: a=b; c=d\nnext", "GET / "+r+"\nnext")
	f("Set-Cookie:a", r)
	f("set-cookie:", "set-cookie:")
	f("my-cookie: a", "my-"+r) // a boundary
	f("mycookie: a", "mycookie: a")
	f("Authorization: Digest a b c\nnext", r+"\nnext")
	f("use bearer abcdefgh.", "use "+r)
	f("use bearer abcdefg", "use bearer abcdefg")
	f("use Bearer \n abcd~+/=x, y", "use "+r+", y")
	for _, name := range []string{
		"api_key", "api-key", "apikey", "APIKey", "secret_key", "secret-key", "private_key", "client_secret", "clientsecret",
		"access_token", "refresh_token", "password", "PASSWD", "pwd", "secret", "token",
	} {
		f("x "+name+"=abcd y", "x "+r+" y")
		f("x "+name+" : 'abcd' y", "x "+r+"' y")
		f(`{"`+name+`": "abcd"}`, `{"`+r+`"}`)
		f(name+"=abc", name+"=abc")
		f("x"+name+"=abcd", "x"+name+"=abcd")
	}
	f("tokens=abcd", "tokens=abcd")
	f("token abcd", "token abcd")
	f("https://me:pw@host/x", "https"+r+"host/x")
	f("https://me@host:80/x", "https://me@host:80/x")
	f("https://host/a:b@c", "https://host/a:b@c")
	f("password=sk-"+n("x", 30)+",", r+",") // matches that overlap
	f("pwd=abcd pwd=efgh", r+" "+r)
	f("token=pwd\"=abcd x", r+" x") // the second match is there only after the first
	f("://me:bearer abcd/efgh@host", r+"host")
	f("bad \xff token=\xff\xfe\xfd\xfc z", "bad \xff "+r+" z")
	f("pwd\"="+strings.Repeat("pwd\"=", 10)+"abcd x", r) // a chain longer than the rounds
	f(strings.Repeat("x", 5000), strings.Repeat("x", 5000))
	f("pa\u017f\u017fword=abcd", r) // long s, which the flag i makes equal to s
	f("coo\u212aie: x", r)          // the sign of kelvin
}

// contract are the expressions of exacta §6.6 as it has them: a second reading, without the bytes
// that are looked for first.
var contract = [2][]string{
	{
		`-----BEGIN [A-Z ]*PRIVATE KEY-----`, `\bsk-[A-Za-z0-9_-]{20,}`, `\bgh[pousr]_[A-Za-z0-9]{20,}`,
		`\bgithub_pat_[A-Za-z0-9_]{20,}`, `\bxox[abprs]-[A-Za-z0-9-]{10,}`, `\bAKIA[0-9A-Z]{16}\b`,
		`\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}`, `(?i)\bauthorization:\s*(bearer|basic)\s+\S+`,
	},
	{
		`(?i)\b(?:set-)?cookie:\s*.+`, `(?i)\bauthorization:\s*.+`, `(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{8,}`,
		`(?i)\b(?:api[_-]?key|secret[_-]?key|private[_-]?key|client[_-]?secret|access[_-]?token|refresh[_-]?token|password|passwd|pwd|secret|token)\b["']?\s*[:=]\s*["']?[^\s"',;]{4,}`,
		`://[^/\s:@]+:[^/\s@]+@`,
	},
}

// placeholderParts is what no text lacks whose only matches are placeholders.
var placeholderParts = regexp.MustCompile(`(?i)token|secret|key|x{3}|example|pwd|cookie|bearer|basic|["'<$[{%*.]|[A-Z]{3}`)

// Values with three digits and no sign in front are no placeholders, unless they have "example".
var (
	beforeValue = regexp.MustCompile(`^(?:(?i:authorization:\s*(?:bearer|basic)\s+)|sk-|gh[pousr]_|github_pat_|xox[abprs]-|AKIA|eyJ)`)
	valueOnly   = regexp.MustCompile(`^[0-9A-WYZa-wyz][\w.~+/=-]*$`)
	threeDigits = regexp.MustCompile(`(?:\d\D*){3}`)
	example     = regexp.MustCompile(`(?i)example`)
)

// mustFind reports whether text has a credential by the contract's expressions that is no
// placeholder for certain, whatever stands beside it.
func (m model) mustFind(text []byte) bool {
	for _, match := range m.high.FindAll(text, -1) {
		value := beforeValue.ReplaceAll(match, nil)
		if valueOnly.Match(value) && threeDigits.Match(value) && !example.Match(value) {
			return true
		}
	}
	return m.high.Match(text) && !placeholderParts.Match(text)
}

// model finds by the contract's expressions.
type model struct{ high, all *regexp.Regexp }

func newModel() model {
	group := func(res []string) string { return "(?:" + strings.Join(res, ")|(?:") + ")" }
	return model{
		high: regexp.MustCompile(group(contract[0])),
		all:  regexp.MustCompile(group(contract[0]) + "|" + group(contract[1])),
	}
}

// failer is a property or a fuzz target.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func (m model) compare(t failer, text []byte) {
	t.Helper()
	if got := secret.Find(text); got && !m.high.Match(text) || !got && m.mustFind(text) {
		t.Fatalf("Find(%q) = %v", text, got)
	}
	leaks := m.all.Match(text)
	if got := secret.Leaks(text); got != leaks {
		t.Fatalf("Leaks(%q) = %v", text, got)
	}
	out := string(secret.Redact(nil, text))
	if !leaks && out != string(text) {
		t.Fatalf("Redact(%q) = %q", text, out)
	}
	if leaks && !strings.Contains(out, secret.Redacted) || m.all.MatchString(out) {
		t.Fatalf("Redact(%q) = %q", text, out)
	}
}

func TestAgainstContract(t *testing.T) {
	m := newModel()
	piece := rapid.SampledFrom([]string{
		"sk-", "gh", "ghp_", "github_pat_", "xoxb-", "AKIA", "eyJ", ".", "authorization:", "Bearer", "basic", " ", "\n", ":", "=",
		"://", "@", "/", "\"", "'", ",", "token", "PWD", "cookie:", "Set-", "api_key", "secret", n("A", 16), n("a1", 20),
		n("key1", 24), "abcd", "x", "-", "_",
		"-----BEGIN ", "PRIVATE KEY-----", "\xff", "ü", "ſ", "[REDACTED]",
	})
	rapid.Check(t, func(t *rapid.T) {
		m.compare(t, []byte(strings.Join(rapid.SliceOfN(piece, 0, 14).Draw(t, "pieces"), "")))
	})
}

// TestFoldedNames spells each name that has a credential behind it with the signs that k and s fold
// to, too.
func TestFoldedNames(t *testing.T) {
	m := newModel()
	names := "api_key apikey secret-key private_key client-secret access_token refresh-token password passwd pwd secret" +
		" token cookie set-cookie"
	for name := range strings.FieldsSeq(names) {
		for _, fold := range []*strings.Replacer{
			strings.NewReplacer(), strings.NewReplacer("k", "\u212a"), strings.NewReplacer("s", "\u017f"),
			strings.NewReplacer("k", "\u212a", "s", "\u017f"),
		} {
			for _, text := range []string{fold.Replace(name), strings.ToUpper(name)} {
				for _, value := range []string{`: abcd`, `"="abcd`, ` abcd`} {
					m.compare(t, []byte(text+value))
					m.compare(t, []byte("x"+text+value))
				}
			}
		}
	}
}

// TestHostile has texts that make a backtracking search take quadratic time or worse. At that they
// would not end.
func TestHostile(t *testing.T) {
	size := rounds.Of(1<<12, 1<<15)
	for _, s := range []string{
		"eyJ-", "eyJaaaaaaaa.", "sk-", "-----BEGIN ", "-----BEGIN PRIVATE KEY----", "authorization:", "authorization: bearer ", "cookie:", "cookie:\n",
		"pwd=", "token\"=", "://a:", "://a:b", "bearer ", "A", "\n", "AKIA", "pwd\"=abcd ", "ghp_", "xoxb-",
	} {
		text := []byte(n(s, size))
		for _, text := range [][]byte{text, append(text, "abcd@"...)} {
			secret.Find(text)
			if out := secret.Redact(nil, text); secret.Leaks(out) {
				t.Errorf("%q many times leaks after Redact", s)
			}
		}
	}
}

func FuzzRedact(f *testing.F) {
	for _, s := range []string{
		"", "token=pwd\"=abcd", "sk-" + n("a", 20), "Authorization: Basic x", "https://me:pw@host", "eyJ" + n("a.", 40),
		"Set-Cookie: a", "-----BEGIN A PRIVATE KEY-----", "AKIA" + n("Z", 16), "://u:bearer abcd/efgh@host",
	} {
		f.Add([]byte(s))
	}
	m := newModel()
	f.Fuzz(func(t *testing.T, text []byte) { m.compare(t, text) })
}

func BenchmarkRedactLogLine(b *testing.B) {
	text := []byte("step 3 of 7: Modify README.md: append text; 25 bytes written, 4 lines, mode=0644")
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = secret.Redact(out[:0], text)
	}
}

func BenchmarkFindInDiff(b *testing.B) {
	text := []byte(n(" \tthe task-list of the disk-cache: key = value;\n", 100_000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		secret.Find(text)
	}
}
