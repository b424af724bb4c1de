package conformance

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// listen opens a stream of subscriptions/listen of the newest revision.
func (s *server) listen(t *testing.T, token, notifications string) *events {
	t.Helper()
	body := rpc("subscriptions/listen", `"notifications":`+notifications+`,"_meta":{`+version+`,`+able+`}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": newEra, "Mcp-Method": "subscriptions/listen"} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return &events{t: t, res: res, in: bufio.NewReader(res.Body)}
}

// data wants the data of the next event to have parts.
func (e *events) data(parts ...string) {
	e.t.Helper()
	_, _, data := e.next()
	for _, part := range parts {
		if !strings.Contains(data, part) {
			e.t.Fatalf("%s lacks %s", data, part)
		}
	}
}

// unread names threads that do not exist.
func unread(n int) string {
	var uris []string
	for i := range n {
		uris = append(uris, fmt.Sprintf(`"thread://x%d"`, i))
	}
	return `{"resourceSubscriptions":[` + strings.Join(uris, ",") + `]}`
}

// TestListen: a client of the newest revision is notified of changes of the threads that it may
// read, and the stream ends with its token, and with the server by its result.
func TestListen(t *testing.T) {
	t.Parallel()
	s := start(t)
	id, secret := s.create(), ""
	if a := s.post("create_thread", coordinator, `{"title":"x","type":"conversation","participants":["executioner_agent"]}`); a.status == 200 {
		secret = a.body["thread_id"].(string)
	}
	e := s.listen(t, reviewer, `{"resourceSubscriptions":["thread://`+id+`","thread://`+secret+`"]}`)
	if got := e.res.Header.Get("Content-Type"); e.res.StatusCode != 200 || got != "text/event-stream" {
		t.Fatalf("%d %s", e.res.StatusCode, got)
	}
	e.data(`"method":"notifications/subscriptions/acknowledged"`, `"io.modelcontextprotocol/subscriptionId":1`, `"resourceSubscriptions":["thread://`+id+`"]`)
	s.send(id, executioner, "x")
	e.data(`"method":"notifications/resources/updated"`, `"io.modelcontextprotocol/subscriptionId":1`, `"uri":"thread://`+id+`"`)
	soon := s.listen(t, tokenOf(claims{"exp": time.Now().Unix() + 2, "iat": time.Now().Unix() - 10, "jti": "soon"}), `{"resourceSubscriptions":["thread://`+id+`"]}`)
	soon.data("acknowledged")
	soon.data(`"id":1,"error":{"code":-32600`, "token")
	none := s.listen(t, reviewer, `{}`)
	none.data(`"notifications":{}`)
	none.data(`"result"`)
	for _, bad := range []string{`null`, `[]`, `{"resourceSubscriptions":"x"}`, `{"resourceSubscriptions":["x"]}`, `{"resourceSubscriptions":["thread://"]}`,
		unread(257)} {
		if got := s.listen(t, reviewer, bad).res.StatusCode; got != 400 {
			t.Errorf("%.60s: %d", bad, got)
		}
	}
	out := s.listen(t, stranger, `{"resourceSubscriptions":["thread://`+id+`"]}`)
	out.data(`"notifications":{}`)
	if a := s.post("update_participants", coordinator, `{"thread_id":"`+id+`","add":["stranger_agent"],"reason":"x"}`); a.status != 200 {
		t.Fatal(a.text)
	}
	out = s.listen(t, stranger, `{"resourceSubscriptions":["thread://`+id+`"]}`)
	out.data(`"resourceSubscriptions"`)
	if a := s.post("update_participants", coordinator, `{"thread_id":"`+id+`","remove":["stranger_agent"],"reason":"x"}`); a.status != 200 {
		t.Fatal(a.text)
	}
	out.data(`"id":1,"error":{"code":-32600`, "may not read")
	if full := s.listen(t, reviewer, unread(256)); full.res.StatusCode != 200 {
		t.Errorf("as many as may be: %d", full.res.StatusCode)
	}
	s.stop()
	for end := false; !end; {
		_, _, data := e.next()
		end = strings.Contains(data, `"id":1,"result":{`)
	}
}

// TestResourcesAndPrompts: threads are resources of their readers alone, and the two prompts name
// the thread.
func TestResourcesAndPrompts(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create()
	s.send(id, executioner, "hello")
	ask := func(token, name, params string) string {
		return s.mcp(rpc(name, params), "Authorization", "Bearer "+token).text
	}
	for _, c := range []struct {
		token, name, params string
		want                []string
	}{
		{reviewer, "resources/list", "", []string{`"uri":"thread://` + id + `"`, `"title":"Mapper review"`, `"cacheScope":"private"`}},
		{stranger, "resources/list", "", []string{`"resources":[]`}},
		{reviewer, "resources/templates/list", "", []string{`"uriTemplate":"thread://{thread_id}"`}},
		{reviewer, "resources/read", `"uri":"thread://` + id + `"`, []string{`\"latest_seq\":1`, `hello`}},
		{stranger, "resources/read", `"uri":"thread://` + id + `"`, []string{`"error":{"code":-3`, "not found"}},
		{foreigner, "resources/read", `"uri":"thread://` + id + `"`, []string{`"error":{"code":-3`, "not found"}},
		{reviewer, "prompts/list", "", []string{`"name":"join_thread"`, `"name":"review_loop"`}},
		{reviewer, "prompts/get", `"name":"join_thread","arguments":{"thread_id":"` + id + `"}`, []string{"thread " + id}},
		{reviewer, "resources/subscribe", `"uri":"thread://` + id + `"`, []string{`"code":-32601`}},
	} {
		text := ask(c.token, c.name, c.params)
		for _, part := range c.want {
			if !strings.Contains(text, part) {
				t.Errorf("%s {%s}: %.600s lacks %s", c.name, c.params, text, part)
			}
		}
	}
}
