package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"unicode/utf8"
)

// FuzzScan compares a scan with one by encoding/json: whether a line is JSON in the sense of exacta
// §3.1, an object, and what its members are.
func FuzzScan(f *testing.F) {
	for _, s := range []string{envelopeOf(), envelopeOf(`"payload":{"a":[1,{"b":null}]}`), envelopeOf(`"command":"x"`), `{"a":1,"a":2}`, `{"__proto__":1,"a":{"b":1,"b":1}}`, `[]`, `{"a":"\ud800"}`,
		`{"type":"request","command":"Pause","payload":{"request_id":"` + someID + `","timeout_ms":5}}`, "\xef\xbb\xbf{}", "{\"a\":\"\xff\"}", `{"a":1e999}`, envelopeOf(`"type":"subscribe"`), `{"type":"ack"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var s Scanner
		var m Message
		r := s.Scan(line, &m)
		again := append([]byte(nil), line...)
		if r2 := s.Scan(again, &m); r2.Code != r.Code || r2.Detail != r.Detail || r2.Field != r.Field || r2.problem != r.problem {
			t.Fatalf("a second scan: %+v, the first %+v", r2, r)
		}
		switch want := readable(line); {
		case want != "" && (r.Code != "IPC-001" || !bytes.HasPrefix([]byte(r.Detail), []byte(want))):
			t.Fatalf("%s %s%s, want %s", r.Code, r.Detail, r.Field, want)
		case want == "" && (r.Detail == "invalid_utf8" || r.Detail == "not_an_object" || r.Detail == "invalid_json: "):
			t.Fatalf("%s for a JSON object", r.Detail)
		}
		out := AppendRefusal(nil, m.RequestID, ID{}, Clock{}, &Refusal{Code: "IPC-003", Value: clip(line, 64), Detail: "x"})
		if utf8.Valid(line) && !json.Valid(out) {
			t.Fatalf("no JSON: %s", out)
		}
		if r.Code == "" && m.Type == Request {
			compare(t, line, &m)
		}
	})
}

// readable returns how the detail of an unreadable line begins, "" for an object.
func readable(line []byte) string {
	line = bytes.TrimPrefix(line, []byte("\uFEFF"))
	if !utf8.Valid(line) {
		return "invalid_utf8"
	}
	if !json.Valid(line) || depthOf(line) > maxDepth || twice(json.NewDecoder(bytes.NewReader(line))) != nil || half(line) {
		return "invalid_json"
	}
	if trimmed := bytes.TrimLeft(line, " \t\r\n"); trimmed[0] != '{' {
		return "not_an_object"
	}
	return ""
}

func depthOf(line []byte) (most int) {
	depth, inside := 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case inside:
		case c == '{' || c == '[':
			depth++
			most = max(most, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return most
}

var errTwice = errors.New("a key twice")

// twice reads one value and returns errTwice if an object has a key twice.
func twice(d *json.Decoder) error {
	d.UseNumber()
	tok, err := d.Token()
	if err != nil || err == io.EOF {
		return err
	}
	open, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	keys := make(map[string]bool)
	for d.More() {
		if open == '{' {
			key, err := d.Token()
			if err != nil {
				return err
			}
			if keys[key.(string)] {
				return errTwice
			}
			keys[key.(string)] = true
		}
		if err := twice(d); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// half reports whether a string has an escape of half a character: encoding/json makes U+FFFD of
// it, which is there more often than it is spelled.
func half(line []byte) bool {
	spelled := bytes.Count(line, []byte("\uFFFD")) + bytes.Count(bytes.ToLower(line), []byte(`\ufffd`))
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	n := 0
	for {
		tok, err := d.Token()
		if err != nil {
			break
		}
		if s, ok := tok.(string); ok {
			n += bytes.Count([]byte(s), []byte("\uFFFD"))
		}
	}
	return n > spelled
}

// compare compares a message that was accepted with its members.
func compare(t *testing.T, line []byte, m *Message) {
	t.Helper()
	var top map[string]json.RawMessage
	if err := json.Unmarshal(line, &top); err != nil {
		t.Fatal(err)
	}
	var inner map[string]json.RawMessage
	if err := json.Unmarshal(top["payload"], &inner); err != nil {
		t.Fatal(err)
	}
	id := top["request_id"]
	if id == nil {
		id = inner["request_id"]
	}
	var text, command string
	if json.Unmarshal(id, &text) != nil || text != string(m.RequestID) || json.Unmarshal(top["command"], &command) != nil || command != m.Command.String() {
		t.Fatalf("id %s, command %s, scanned %q and %s", text, command, m.RequestID, m.Command)
	}
	if !bytes.Equal(bytes.TrimSpace(top["payload"]), m.Payload) {
		t.Fatalf("payload %s, scanned %s", top["payload"], m.Payload)
	}
}
