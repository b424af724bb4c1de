// Package bridge speaks the Model Context Protocol on a pair of streams and turns each tool call
// into a request to the server of agent threads (threads §2.3). It has no store, so that many
// participants can run it at once.
package bridge

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"trunkline/codec/jsonx"
	"trunkline/engine/smallfile"
	"trunkline/handlers/threads/mcp"
	"trunkline/handlers/threads/method"
)

// Bounds of a request to the server.
const (
	// maxAnswer is a page of messages of the largest size, with room around it.
	maxAnswer = 8 << 20
	// maxTime is how long the server may take: its own limits of a body, of a wait and of an
	// answer, and some.
	maxTime = 130 * time.Second
	// answerDepth is how deep an answer may be nested: that of an input, and what is around it.
	answerDepth = 80
)

// Config is what Run works with.
type Config struct {
	// URL is where the server is, without the path of a method.
	URL string
	// Token returns the token of the next request.
	Token func() (string, error)
	// Now is the clock of the errors that are made here; nil: time.Now.
	Now func() time.Time
}

// Run serves the client behind in and out until in ends, and then returns nil, or until ctx does.
// What was asked is answered first. Nothing but messages is written to out.
func Run(ctx context.Context, in io.Reader, out io.Writer, cfg Config) error {
	if err := CheckURL(cfg.URL); err != nil {
		return err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	b := &bridge{cfg: cfg, base: strings.TrimRight(cfg.URL, "/") + "/v1/", client: &http.Client{
		Transport: transport, Timeout: maxTime,
		// A redirection would take the token to another place.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	return serve(ctx, in, out, mcp.NewStream(method.Rows, b.call))
}

// CheckURL refuses an address that no request can go to.
func CheckURL(text string) error {
	if !strings.Contains(text, "://") {
		return fmt.Errorf("cannot use %q as the address of the server: it has no scheme, as http://%[1]s has", text)
	}
	u, err := url.Parse(text)
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		err = errors.New("want http:// or https:// with a host")
	}
	if err != nil {
		return fmt.Errorf("cannot use the address of the server: %w", err)
	}
	return nil
}

// bridge makes requests to the server.
type bridge struct {
	cfg    Config
	base   string
	client *http.Client
}

// unreachable is the answer to a client when there is none of the server.
var unreachable = &method.Fault{Condition: method.Unavailable, Message: "the server cannot be reached"}

// call implements mcp.Call.
func (b *bridge) call(ctx context.Context, row *method.Row, args []byte) (text []byte, failed bool) {
	token, err := b.cfg.Token()
	switch {
	case err != nil || token == "":
		return b.envelope(&method.Fault{Condition: method.Unauthorized, Message: "there is no token", Details: []byte(`{"reason":"missing"}`)}), true
	case strings.ContainsFunc(token, unicode.IsControl): // no header has these
		return b.envelope(&method.Fault{Condition: method.Unauthorized, Message: "the token has several lines", Details: []byte(`{"reason":"malformed"}`)}), true
	}
	status, body, err := b.post(ctx, b.base+row.Name, token, args)
	if err != nil {
		return b.envelope(unreachable), true
	}
	var error [1]jsonx.Value
	isObject := jsonx.Check(body, answerDepth).OK() && jsonx.ValueOf(body).Kind == jsonx.ObjectStart
	if isObject {
		jsonx.Pick(body, []string{"error"}, error[:])
	}
	switch {
	case isObject && status == http.StatusOK:
		return body, false
	case isObject && status >= http.StatusBadRequest && error[0].Kind == jsonx.ObjectStart:
		return body, true
	}
	return b.envelope(unreachable), true // a proxy answers, or something else that is no server
}

// post makes one request.
func (b *bridge) post(ctx context.Context, url, token string, body []byte) (status int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := b.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(answer) > maxAnswer {
		err = errors.New("the answer is too long")
	}
	return resp.StatusCode, bytes.TrimSpace(answer), err
}

// envelope is the error envelope of a fault that the server did not see.
func (b *bridge) envelope(f *method.Fault) []byte {
	now := b.cfg.Now()
	return method.AppendEnvelope(nil, f, method.Spec, requestID(now), now)
}

// requestID returns req_ and a ULID.
func requestID(now time.Time) []byte {
	const crockford, timeText = "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 10
	var id [26]byte
	_, _ = rand.Read(id[timeText:]) // it does not fail
	for i, ms := timeText-1, now.UnixMilli(); i >= 0; i, ms = i-1, ms>>5 {
		id[i] = byte(ms)
	}
	for i := range id {
		id[i] = crockford[id[i]&31]
	}
	return append([]byte("req_"), id[:]...)
}

// maxTokenFile bounds a file with a token: the longest token, and space around it.
const maxTokenFile = 16 << 10

// TokenFile returns the token in a file. The file is read again when it has changed. Any goroutine
// may call what it returns.
func TokenFile(name string) func() (string, error) {
	f := &tokenFile{name: name}
	return f.token
}

// tokenFile is a file with a token, as it was read last.
type tokenFile struct {
	name string

	mu      sync.Mutex
	text    string
	changed time.Time
	size    int64
}

func (f *tokenFile) token() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.name)
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	if f.text != "" && info.ModTime().Equal(f.changed) && info.Size() == f.size {
		return f.text, nil
	}
	text, err := smallfile.Read(f.name)
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	if len(text) > maxTokenFile {
		return "", fmt.Errorf("cannot read the token: %s is larger than %d bytes", f.name, maxTokenFile)
	}
	f.text, f.changed, f.size = strings.TrimSpace(string(text)), info.ModTime(), info.Size()
	return f.text, nil
}
