package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestPagesOfDocuments: as many are made at a time as the limit is, one more waits, and others do
// not.
func TestPagesOfDocuments(t *testing.T) {
	begun, release := make(chan bool), make(chan bool)
	r := newRig(t, func(c *Config) {
		c.Source.Process = func(_ context.Context, pid string) (ProcessDetail, error) {
			begun <- true
			<-release
			return ProcessDetail{Process: Process{PID: pid}}, nil
		}
	})
	answers := make(chan int, maxMade+1)
	ask := func() { answers <- r.get(root + "process?pid=p").Code }
	for range maxMade {
		go ask()
		<-begun
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // as after callWithin
	want(t, r.do(request("GET", root+"process.json?pid=p", nil).WithContext(ctx)), 503, fmt.Sprint(maxMade, " pages of this kind"))
	w := request("GET", root+"process?pid=p", nil).WithContext(ctx)
	w.Header.Set("Accept", "text/html,*/*")
	want(t, r.do(w), 503, `<p role="alert" class="bad">503: `)
	want(t, r.get(root+"store"), 200, "")
	go ask()
	release <- true
	<-begun
	for range maxMade {
		release <- true
	}
	for range maxMade + 1 {
		if status := <-answers; status != 200 {
			t.Errorf("status %d", status)
		}
	}
}

// TestLongHistory: of a history that is longer than a page, the last entries are there.
func TestLongHistory(t *testing.T) {
	var b strings.Builder
	for i := range maxRows + 1 {
		fmt.Fprintf(&b, `,{"stage":"s%d"}`, i)
	}
	long := timeline(json.RawMessage(`{"errors":[{"stage":"` + strings.Repeat("s", 2*maxDetail) + `","error":"` + strings.Repeat("e", 2*maxDetail) + `"}]}`))
	if len(long) != 1 || len(long[0].Where) > maxDetail+4 || len(long[0].What) > maxDetail+4 {
		t.Errorf("%d entries, the texts of the first have %d and %d bytes", len(long), len(long[0].Where), len(long[0].What))
	}
	list := timeline(json.RawMessage(`{"processing_history":[` + b.String()[1:] + `]}`))
	if len(list) != maxRows || list[0].Where != "s1" || list[maxRows-1].Where != fmt.Sprint("s", maxRows) {
		t.Errorf("%d entries from %+v", len(list), list[0])
	}
}

// TestRefusalsForPeople: a browser gets a page, a program JSON.
func TestRefusalsForPeople(t *testing.T) {
	r := newRig(t, withTokens)
	f := func(q *http.Request, status int, page, program string) {
		t.Helper()
		q.Header.Del("Accept")
		w := r.do(q)
		if want(t, w, status, program); w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("a program gets %v", w.Header())
		}
		q.Body = http.NoBody
		q.Header.Set("Accept", "text/html,application/xhtml+xml")
		w = r.do(q)
		if want(t, w, status, page); w.Header().Get("Content-Security-Policy") != contentSecurity {
			t.Errorf("a page has %v", w.Header())
		}
	}
	view := r.logIn(viewToken)
	f(request("POST", root+"process/terminate", nil), 401, "<h1>Error</h1>", `{"error":"a token is needed`)
	f(with(request("POST", root+"process/terminate", nil), view), 403, "Role: viewer", `{"error":"the role viewer`)
	f(with(request("POST", root+"logout", nil), view), 403, "load the page again", `{"error":"the secret of the form`)
	for range failuresAtOnce {
		r.do(bearer(request("GET", root+"store.json", nil), "wrong"))
	}
	f(bearer(request("GET", root+"store", nil), "wrong"), 429, "429: too many wrong tokens", `{"error":"too many wrong tokens`)
}
