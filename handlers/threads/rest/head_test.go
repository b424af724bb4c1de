package rest

import (
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"trunkline/handlers/threads/method"
)

func TestMediaTypes(t *testing.T) {
	f := func(want bool, values ...string) {
		t.Helper()
		h := http.Header{}
		for _, v := range values {
			h.Add("Content-Type", v)
		}
		if got := isJSON(h); got != want {
			t.Errorf("isJSON(%q) = %v", values, got)
		}
	}
	f(true, "application/json")
	f(true, "APPLICATION/JSON ; charset=Utf-8")
	f(true, `application/json;charset="UTF-8";profile=a`)
	f(true, "application/json;")
	f(true, "application/json; odd parameter")
	f(false)
	f(false, "")
	f(false, "application")
	f(false, "application/")
	f(false, "application/jsonp")
	f(false, "application/problem+json")
	f(false, "text/json")
	f(false, "application/json; charset=")
	f(false, "application/json; charset=utf-16")
	f(false, "application/json; charset utf-8")
	f(false, "application/json; charset=utf-8; charset=latin1")
	f(false, "application/json, application/json")
	f(false, "application/json", "application/json")
}

func TestPathOf(t *testing.T) {
	f := func(target, want string) {
		t.Helper()
		if got := pathOf(target); got != want {
			t.Errorf("%q: %q, want %q", target, got, want)
		}
	}
	f("/v1/x", "/v1/x")
	f("/v1/x?a=/b?c", "/v1/x")
	f("/v1/%78", "/v1/%78")
	f("//h/v1", "//h/v1")
	f("/a://b/c", "/a://b/c")
	f("http://h/v1/x?a", "/v1/x")
	f("http://h", "/")
	f("http://h?/v1/x", "/")
	f("*", "*")
	f("host:80", "host:80")
	f("", "")
}

// TestBearer builds fields whose parts are known.
func TestBearer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scheme := rapid.SampledFrom([]string{"Bearer", "bearer", "BEARER", "Basic", "Bearer:", ""}).Draw(t, "scheme")
		space := rapid.SampledFrom([]string{" ", "   ", "", "\t"}).Draw(t, "space")
		words := rapid.SliceOfN(rapid.StringMatching(`[A-Za-z0-9._-]{1,20}`), 0, 2).Draw(t, "words")
		join := rapid.SampledFrom([]string{" ", "\t", ",", ", "}).Draw(t, "join")
		text, ok := method.Bearer([]string{scheme + space + strings.Join(words, join)})
		want := strings.EqualFold(scheme, "bearer") && strings.HasPrefix(space, " ") && len(words) == 1
		if ok != want || ok && text != words[0] {
			t.Fatalf("%q, %v, want %v", text, ok, want)
		}
	})
	if _, ok := method.Bearer([]string{"Bearer a", "Bearer a"}); ok {
		t.Error("two fields were taken")
	}
}
