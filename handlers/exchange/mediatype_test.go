package exchange

import (
	"net/http"
	"testing"
)

func TestContentTypes(t *testing.T) {
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
	f(true)
	f(true, "application/json")
	f(true, "Application/JSON")
	f(true, "application/json; charset=utf-8")
	f(true, `application/json;charset="UTF-8"`)
	f(true, "application/json ; x=y; charset=Utf-8")
	f(true, "application/json; profile=a")
	f(true, "application/json;")
	f(true, "application/vnd.api+json")
	f(true, "application/problem+json; charset=utf-8")
	f(false, "")
	f(false, "text/plain")
	f(false, "text/json")
	f(false, "application/x-www-form-urlencoded")
	f(false, "application/+json")
	f(false, "application/jsonp")
	f(false, "application/json+xml")
	f(false, "application")
	f(false, "application/json/x")
	f(false, "image/svg+json")
	f(false, "application/json; charset=latin1")
	f(false, "application/json; charset=utf-16")
	f(false, "application/json; charset=")
	f(false, "application/json; charset=utf-8; charset=latin1")
	f(false, "application/json", "application/json")
}

func TestContentEncodings(t *testing.T) {
	f := func(want bool, values ...string) {
		t.Helper()
		h := http.Header{}
		for _, v := range values {
			h.Add("Content-Encoding", v)
		}
		if got := isPlain(h); got != want {
			t.Errorf("isPlain(%q) = %v", values, got)
		}
	}
	f(true)
	f(true, "")
	f(true, "identity")
	f(true, "Identity, identity")
	f(true, "identity", "identity")
	f(false, "gzip")
	f(false, "identity, gzip")
	f(false, "identity", "br")
}
