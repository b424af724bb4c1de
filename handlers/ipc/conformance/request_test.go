package conformance

import (
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"trunkline/codec/transcode"

	"github.com/cockroachdb/datadriven"
)

// request is one encoded request and the id its answer will have.
type request struct {
	id    string
	frame []byte
}

func joinRequests(requests []request) []byte {
	var out []byte
	for _, r := range requests {
		out = append(out, r.frame...)
	}
	return out
}

// requests encodes a command's lines. With repeat=n the lines are sent n times with %i counting
// from 1.
func (s *script) requests(d *datadriven.TestData) []request {
	s.t.Helper()
	repeat := 1
	d.MaybeScanArgs(s.t, "repeat", &repeat)
	var out []request
	for i := range repeat {
		for _, line := range strings.Split(d.Input, "\n") {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			twin := s.twin(strings.ReplaceAll(line, "%i", strconv.Itoa(i+1)), d)
			payload, err := transcode.EncodeJSON([]byte(twin))
			if err != nil {
				d.Fatalf(s.t, "%s: %v", twin, err)
			}
			out = append(out, request{id: parseTwin(twin).get("id").text(), frame: appendFrame(nil, 0x01, payload)})
		}
	}
	return out
}

// twin turns a line into the JSON of a request.
func (s *script) twin(line string, d *datadriven.TestData) string {
	s.t.Helper()
	line = quoteText(unfoldRuns(s.substitute(line)))
	if json.Valid([]byte(line)) {
		return line
	}
	id, rest, _ := strings.Cut(line, " ")
	target, body, _ := strings.Cut(rest, " ")
	service, method, ok := strings.Cut(target, ".")
	if !ok {
		d.Fatalf(s.t, "want ID SERVICE.METHOD [BODY], got %q", line)
	}
	if body == "" {
		body = "{}"
	}
	quote := func(s string) string { return scalarText(s) }
	return `{"id":` + quote(id) + `,"service":` + quote(service) + `,"method":` + quote(method) + `,"body":` + body + `}`
}

var runs = regexp.MustCompile(`<(.)\*(\d+)>`)

// unfoldRuns writes <x*65> out.
func unfoldRuns(s string) string {
	return runs.ReplaceAllStringFunc(s, func(m string) string {
		parts := runs.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[2])
		return strings.Repeat(parts[1], n)
	})
}

// bytes reads byte tokens: hex pairs, 'text' as it is, and either one times n as in 91*510 or
// 'x'*20.
func (s *script) bytes(d *datadriven.TestData) []byte {
	s.t.Helper()
	var out []byte
	for _, token := range tokens(d.Input) {
		times := 1
		if i := strings.LastIndexByte(token, '*'); i > 0 && !strings.HasSuffix(token, "'") {
			n, err := strconv.Atoi(token[i+1:])
			if err != nil {
				d.Fatalf(s.t, "bad token %q", token)
			}
			token, times = token[:i], n
		}
		b, err := hex.DecodeString(token)
		if strings.HasPrefix(token, "'") {
			b, err = []byte(strings.Trim(token, "'")), nil
		}
		if err != nil {
			d.Fatalf(s.t, "bad token %q: %v", token, err)
		}
		for range times {
			out = append(out, b...)
		}
	}
	return out
}

// tokens splits at white space outside quotes.
func tokens(text string) []string {
	quoted := false
	return strings.FieldsFunc(text, func(r rune) bool {
		if r == '\'' {
			quoted = !quoted
		}
		return !quoted && (r == ' ' || r == '\n' || r == '\t')
	})
}
