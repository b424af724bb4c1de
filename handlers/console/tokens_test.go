package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestFailuresByNetwork: the addresses of one IPv6 network have one count.
func TestFailuresByNetwork(t *testing.T) {
	r := newRig(t, withTokens)
	f := func(peer string, status int) {
		t.Helper()
		q := bearer(request("GET", root+"store.json", nil), "wrong")
		q.RemoteAddr = peer
		want(t, r.do(q), status, "")
	}
	for i := range failuresAtOnce {
		f(fmt.Sprintf("[2001:db8:0:1::%x]:1", i+1), 401)
	}
	f("[2001:db8:0:1:ffff::]:1", 429)
	if n := strings.Count(r.log.String(), `msg="console token refused" path=/console/store.json peer=[2001:db8:0:1::`); n != failuresAtOnce {
		t.Errorf("%d refusals are logged:\n%s", n, r.log)
	}
	f("[2001:db8:0:2::1]:1", 401)
	f("[::ffff:10.0.0.1]:1", 401)
	f("[::ffff:10.0.0.2]:1", 401)
	if n := len(r.auth.peers); n != 4 {
		t.Errorf("%d peers are counted, want 4", n)
	}
}

// TestOtherTokens: what a token opened ends with it, and what others did does not.
func TestOtherTokens(t *testing.T) {
	r := newRig(t)
	f := func(q *http.Request, status int) {
		t.Helper()
		if w := r.do(q); w.Code != status {
			t.Errorf("%d, want %d: %.200s", w.Code, status, w.Body)
		}
	}
	page := func() *http.Request { return request("GET", root+"store.json", nil) }
	f(page(), 200)
	if v, o := r.SetTokens(viewToken, opToken); !v || !o {
		t.Errorf("two new tokens: %v %v", v, o)
	}
	f(page(), 401)
	view, op := r.logIn(viewToken), r.logIn(opToken)
	if v, o := r.SetTokens(viewToken, opToken); v || o {
		t.Errorf("the same tokens: %v %v", v, o)
	}
	f(with(page(), view), 200)
	if v, o := r.SetTokens("another one of viewers", opToken); !v || o {
		t.Errorf("another token of viewers: %v %v", v, o)
	}
	f(with(page(), view), 401)
	f(with(page(), op), 200)
	f(bearer(page(), viewToken), 401)
	f(bearer(page(), "another one of viewers"), 200)
	old := r.auth.inForce()
	r.SetTokens(opToken, "")
	f(with(page(), op), 401)
	if _, _, ok := r.auth.begin(&old, operator); ok {
		t.Error("a login with a token that was replaced meanwhile")
	}
	f(bearer(request("POST", root+"process/terminate", url.Values{"pid": {"p"}}), opToken), 403) // a viewer now
	if r.SetTokens("", ""); len(r.auth.sessions) != 0 {
		t.Errorf("%d logins without tokens", len(r.auth.sessions))
	}
	f(page(), 200)
}
