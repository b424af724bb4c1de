package exchange

import (
	"bytes"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"

	"trunkline/engine/envelope"
	"trunkline/handlers/internal/httpd"
)

const hi = `{"envelope_id":"env_00000000000000a1","raw_input":"hi","outputs":{},"current_stage":"start","terminated":false}`

func TestWorkedExample(t *testing.T) {
	_, addr := start(t, HTTPConfig{}, nil)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Post("http://"+addr+"/api/v1/process?trace=1", "application/json", strings.NewReader(hi))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" || resp.ContentLength != int64(b.Len()) {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	for _, want := range []string{`"current_stage":"perception"`, `"user_id":"anonymous"`, `"request_id":"req_`, `"session_id":"sess_`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, b.String())
		}
	}
}

func TestOneConnectionServesManyRequests(t *testing.T) {
	s, addr := start(t, HTTPConfig{}, nil)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ask := func(body, kind string, status int, first bool) {
		t.Helper()
		req, _ := http.NewRequest("POST", "http://"+addr+path, strings.NewReader(body))
		req.Header.Set("Content-Type", kind)
		trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
			if c.Reused == first {
				t.Errorf("%s: connection reused: %v", body, c.Reused)
			}
		}}
		resp, err := client.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		_, _ = b.ReadFrom(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("%s = %d %s, want %d", body, resp.StatusCode, b.String(), status)
		}
	}
	ask(hi, "application/json", 200, true)
	ask("{", "application/json", 400, false)
	ask(hi, "text/plain", 415, false)
	ask("[]", "application/json", 422, false)
	ask(hi, "application/problem+json; charset=UTF-8", 200, false)
	if st := s.Stats(); st.Requests != [6]uint64{2: 2, 4: 3} || st.InFlight != 0 || st.Connections != 1 {
		t.Errorf("%+v", st)
	}
}

// TestErrorsThatKeepTheConnection walks through the rows of envelope §2.3 and §8, all on one
// connection.
func TestErrorsThatKeepTheConnection(t *testing.T) {
	_, addr := start(t, HTTPConfig{MaxBodyBytes: 1 << 20}, nil)
	p := dial(t, addr)
	f := func(head, body string, status int, code string) reply {
		t.Helper()
		p.write("%s\nHost: x\nContent-Length: %d\n\n%s", head, len(body), body)
		r := p.wantError(head, status, code)
		if r.Close {
			t.Errorf("%s: Connection: close", head)
		}
		return r
	}
	const post = "POST /api/v1/process HTTP/1.1"
	f(post, "", 400, "parse_error")
	f(post, "{not json", 400, "parse_error")
	f(post, hi+"{}", 400, "parse_error")
	f(post, "{}", 422, "invalid_envelope")
	f(post, "[1]", 422, "invalid_envelope")
	if r := f(post, `{"raw_input":"a","iteration":2.5}`, 422, "invalid_envelope"); r.object["field"] != "iteration" {
		t.Error(r.body)
	}
	for _, target := range []string{"/", "/api/v1/process/", "/api/v1", "//api/v1/process", "/api/v1/%70rocess", "/API/v1/process", "/api/v1/process%3F", "/api/v1/./process", "*"} {
		f("POST "+target+" HTTP/1.1", hi, 404, "not_found")
		f("OPTIONS "+target+" HTTP/1.1", "", 404, "not_found")
	}
	for _, method := range []string{"GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "post"} {
		if r := f(method+" /api/v1/process HTTP/1.1", hi, 405, "method_not_allowed"); r.Header.Get("Allow") != "POST" {
			t.Errorf("%s: Allow %q", method, r.Header.Get("Allow"))
		}
	}
	f(post+"\nContent-Type: text/plain", hi, 415, "unsupported_media_type")
	f(post+"\nContent-Type: application/x-www-form-urlencoded", "a=b", 415, "unsupported_media_type")
	f(post+"\nContent-Type: application/json; charset=latin1", hi, 415, "unsupported_media_type")
	f(post+"\nContent-Encoding: gzip", hi, 415, "unsupported_media_type")
	f(post+"\nContent-Type: text/plain", strings.Repeat("x", 1<<20), 415, "unsupported_media_type")
	p.write("POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n3\nabc\n0\n\n")
	p.wantError("a chunked body nobody reads", 404, "not_found")
	p.wantOpen("after all errors")
}

func TestHead(t *testing.T) {
	_, addr := start(t, HTTPConfig{}, nil)
	p := dial(t, addr)
	p.write("HEAD /api/v1/process HTTP/1.1\nHost: x\n\n")
	if r := p.read("HEAD", http.MethodHead); r.StatusCode != 405 || r.Header.Get("Allow") != "POST" || r.body != "" {
		t.Errorf("%d %v %q", r.StatusCode, r.Header, r.body)
	}
	p.wantOpen("HEAD")
}

func TestAcceptedRequests(t *testing.T) {
	_, addr := start(t, HTTPConfig{}, nil)
	p := dial(t, addr)
	f := func(head string) {
		t.Helper()
		p.write("%s\nHost: x\nContent-Length: %d\n\n%s", head, len(hi), hi)
		p.wantEnvelope(head, "perception")
	}
	f("POST /api/v1/process HTTP/1.1")
	f("POST /api/v1/process? HTTP/1.1")
	f("POST /api/v1/process?a=/b&%zz HTTP/1.1")
	f("POST http://elsewhere/api/v1/process HTTP/1.1")
	f("POST /api/v1/process HTTP/1.1\nContent-Type: application/json; charset=\"utf-8\"")
	f("POST /api/v1/process HTTP/1.1\nContent-Encoding: identity")
}

func TestOverBoundsIsAnEnvelope(t *testing.T) {
	_, addr := start(t, HTTPConfig{}, nil)
	p := dial(t, addr)
	p.post(`{"raw_input":"a","llm_call_count":10}`)
	if r := p.wantEnvelope("bounds", "perception"); r.object["terminal_reason"] != "max_llm_calls_exceeded" || r.object["code"] != nil {
		t.Error(r.body)
	}
}

func TestPanicIsAnInternalError(t *testing.T) {
	calls := 0
	engine := newEngine()
	s, addr := start(t, HTTPConfig{}, func(dst, src []byte) ([]byte, envelope.Reason, *envelope.Error) {
		if calls++; calls == 1 {
			panic("boom")
		}
		return engine.Process(dst, src)
	})
	p := dial(t, addr)
	p.post(hi)
	if r := p.wantError("panic", 500, "internal"); strings.Contains(r.body, "boom") || r.Close {
		t.Errorf("%s, close %v", r.body, r.Close)
	}
	p.wantOpen("panic")
	if st := s.Stats(); st.Requests != [6]uint64{2: 1, 5: 1} || st.InFlight != 0 {
		t.Errorf("%+v", st)
	}
}

func TestUnknownEngineErrorIsInternal(t *testing.T) {
	_, addr := start(t, HTTPConfig{}, func([]byte, []byte) ([]byte, envelope.Reason, *envelope.Error) {
		return nil, envelope.NoReason, &envelope.Error{Code: codeInternal, Message: "no"}
	})
	p := dial(t, addr)
	p.post(hi)
	p.wantError("internal", 500, "internal")
	p.post(hi)
	p.wantError("internal, again", 500, "internal")
}

// TestLargeReplies shows that replies of any size come whole, with their length.
func TestLargeReplies(t *testing.T) {
	n := 0
	_, addr := start(t, HTTPConfig{}, func(dst, src []byte) ([]byte, envelope.Reason, *envelope.Error) {
		return append(append(append(dst, `{"x":"`...), strings.Repeat("HTTP/1.1 400 ", n)...), `"}`...), envelope.NoReason, nil
	})
	p := dial(t, addr)
	for _, n = range []int{0, 1, 100, 150, 300, 320, httpd.MaxKept / 13, 400000} {
		p.post(hi)
		if r := p.read("large", "POST"); len(r.body) != 8+13*n {
			t.Errorf("%d bytes, want %d", len(r.body), 8+13*n)
		}
	}
}
