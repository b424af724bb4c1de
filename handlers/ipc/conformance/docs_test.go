package conformance

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/codec/transcode"
	"trunkline/fuzz/kit/ipctest"
	"trunkline/handlers/ipc/ipcclient"
)

// What docs/envelope.md shows is run here, so that the page and the server cannot drift apart: its
// transcripts over a socket, its commands in this process, its worker with a Python interpreter
// where there is one.

const envelopePage = "../../../docs/envelope.md"

// documentedNow is where the clock stands on the page.
var documentedNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fenced returns the contents of a page's code blocks of one language.
func fenced(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(envelopePage)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for i, part := range strings.Split(string(text), "```") {
		if body, ok := strings.CutPrefix(part, language+"\n"); ok && i%2 == 1 {
			blocks = append(blocks, body)
		}
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no block of %s", envelopePage, language)
	}
	return blocks
}

// page compares what is documented with what is answered. Generated ids are bound as they come: an
// id of the page stands for the one that was answered in its place, from then on.
type page struct {
	ids map[string]string
}

var generated = regexp.MustCompile(`^(env|req|sess)_[0-9a-f]{16}$`)

// actual returns text with the page's ids replaced by the real ones.
func (p *page) actual(text string) string {
	for documented, real := range p.ids {
		text = strings.ReplaceAll(text, documented, real)
	}
	return text
}

// parseElided reads JSON in which … stands for members left out.
func parseElided(text string) *node {
	return parseTwin(strings.ReplaceAll(text, "…", `"…":0`))
}

// same reports whether got is what is documented: the same values, more keys only where … stands.
func (p *page) same(doc, got *node) bool {
	switch {
	case doc.object != got.object || doc.array != got.array:
		return false
	case doc.object:
		return p.sameMap(doc, got)
	case doc.array:
		return slices.EqualFunc(doc.kids, got.kids, p.same)
	}
	return p.sameScalar(doc, got)
}

func (p *page) sameMap(doc, got *node) bool {
	elided := 0
	for i, key := range doc.keys {
		if key == "…" {
			elided = 1
			continue
		}
		at := slices.Index(got.keys, key)
		if at < 0 || !p.same(doc.kids[i], got.kids[at]) {
			return false
		}
	}
	return elided == 1 || len(doc.keys) == len(got.keys)
}

func (p *page) sameScalar(doc, got *node) bool {
	want, have := doc.text(), got.text()
	if doc.scalar == got.scalar && p.ids[want] == "" {
		return true
	}
	if !generated.MatchString(want) || !generated.MatchString(have) || want[:3] != have[:3] {
		return false
	}
	if p.ids[want] == "" {
		p.ids[want] = have
	}
	return p.ids[want] == have
}

// TestPageComparison: the comparison finds what differs.
func TestPageComparison(t *testing.T) {
	f := func(doc, got string, want bool) {
		t.Helper()
		p := &page{ids: map[string]string{}}
		if p.same(parseElided(doc), parseTwin(got)) != want {
			t.Errorf("%s against %s: %v", doc, got, !want)
		}
	}
	f(`{"a":1}`, `{"a":1}`, true)
	f(`{"a":1}`, `{"a":1.0}`, false)
	f(`{"a":1}`, `{"a":1,"b":2}`, false)
	f(`{"a":1,…}`, `{"b":2,"a":1}`, true)
	f(`{"a":{…},"b":[1,{"c":2,…}]}`, `{"a":{"x":1},"b":[1,{"c":2,"d":3}]}`, true)
	f(`{"a":{…}}`, `{"a":null}`, false)
	f(`{"a":1,…}`, `{"b":2}`, false)
	f(`{"a":[1]}`, `{"a":[1,2]}`, false)
	f(`{"a":"env_00000000000000a1","b":"env_00000000000000a1"}`, `{"a":"env_00000000000000b2","b":"env_00000000000000b2"}`, true)
	f(`{"a":"env_00000000000000a1","b":"env_00000000000000a1"}`, `{"a":"env_00000000000000b2","b":"env_00000000000000c3"}`, false)
	f(`{"a":"env_00000000000000a1"}`, `{"a":"req_00000000000000b2"}`, false)
	f(`{"a":"x"}`, `{"a":"y"}`, false)
}

// recorded is one call of a transcript and what it is answered.
type recorded struct {
	target, body, reply string
}

// exchanges reads a transcript: "> SERVICE.METHOD JSON" with its continued lines, then "< JSON" or
// "< CODE: message".
func exchanges(t *testing.T, text string) (all []recorded) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch mark, rest, _ := strings.Cut(line, " "); {
		case mark == ">":
			target, body, _ := strings.Cut(rest, " ")
			all = append(all, recorded{target: target, body: body})
		case mark == "<" && len(all) > 0 && all[len(all)-1].reply == "":
			all[len(all)-1].reply = rest
		case strings.HasPrefix(line, "  ") && len(all) > 0 && all[len(all)-1].reply == "":
			all[len(all)-1].body += strings.TrimPrefix(line, "  ")
		case mark != "#" && line != "":
			t.Fatalf("%s: cannot read the line %q", envelopePage, line)
		}
	}
	return all
}

func documentedServer(t *testing.T) *ipctest.Server {
	t.Helper()
	return ipctest.Start(t, ipctest.With(func(c *ipctest.Config) {
		c.Now = func() (mono, wall int64) { return int64(time.Hour), documentedNow.UnixMilli() }
	}))
}

// TestDocumentedTranscripts makes every call of the page's transcripts over a socket.
func TestDocumentedTranscripts(t *testing.T) {
	for _, text := range fenced(t, "transcript") {
		conn, err := ipcclient.Dial(t.Context(), documentedServer(t).Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		p := &page{ids: map[string]string{}}
		for _, e := range exchanges(t, text) {
			got := converse(t, conn, e.target, p.actual(e.body))
			if strings.HasPrefix(e.reply, "{") && p.same(parseElided(e.reply), parseTwin(got)) || got == p.actual(e.reply) {
				continue
			}
			t.Fatalf("> %s %s\ndocumented %s\nanswered   %s", e.target, e.body, e.reply, got)
		}
	}
}

// converse is trunkline call: the body of the reply as JSON, or "CODE: message".
func converse(t *testing.T, conn *ipcclient.Conn, target, body string) string {
	t.Helper()
	request, err := transcode.EncodeJSON([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	service, method, _ := strings.Cut(target, ".")
	reply, err := conn.Call(t.Context(), service, method, request)
	var said *ipcclient.Error
	if errors.As(err, &said) {
		return said.Error()
	}
	if err != nil {
		t.Fatalf("%s: %v", target, err)
	}
	var text bytes.Buffer
	out, err := transcode.AppendJSON(text.AvailableBuffer(), reply)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
