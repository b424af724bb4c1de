package token

import (
	"os"
	"testing"
)

// TestCurrent: what one Verifier took has to be verified again by the next, and one that verifies
// the same changes nothing.
func TestCurrent(t *testing.T) {
	name := file(t, secret)
	next := func(audience string) *Verifier {
		t.Helper()
		v, err := New(Config{HS256SecretFile: name, Issuer: "i", Audience: audience, Now: atNow})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	c := NewCurrent(next(""))
	defer func() { c.Close() }()
	token := hs(t, header, with())
	f := func(why string, ok bool) {
		t.Helper()
		_, err := c.Verify(token)
		_, known := c.VerifyKnown(token)
		if (err == nil) != ok || (known == nil) != ok {
			t.Errorf("%s: %v, %v", why, err, known)
		}
	}
	f("at first", true)
	first := c.Generation()
	if c.Replace(next("")) || c.Generation() != first {
		t.Error("the same keys and claims are something new")
	}
	if !c.Replace(next("other")) {
		t.Error("another audience is nothing new")
	}
	second := c.Generation()
	f("another audience", false)
	if err := os.WriteFile(name, []byte(secret+"!"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !c.Replace(next("")) {
		t.Error("another secret is nothing new")
	}
	f("another secret", false)
	if err := os.WriteFile(name, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	if !c.Replace(next("")) {
		t.Error("the first secret is nothing new")
	}
	f("the first secret again", true)
	if g := c.Generation(); first == second || second == g || first == g {
		t.Errorf("generations %d, %d, %d", first, second, g)
	}
}

func TestHasKeys(t *testing.T) {
	if !open(t, Config{}).hasKeys() {
		t.Error("a secret is a key")
	}
	if open(t, Config{JWKSURL: "http://127.0.0.1:1/none"}).AwaitKeys() {
		t.Error("there are keys of a set that is out of reach")
	}
}
