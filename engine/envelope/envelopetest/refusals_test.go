package envelopetest_test

import (
	"strings"
	"testing"
)

// broken: no JSON text at all (envelope §8, §2.2).
func broken(t *testing.T, text string) {
	t.Helper()
	out, err := step(t, text)
	switch {
	case err == nil:
		t.Errorf("%q: accepted: %s", text, out)
	case err.Code != "parse_error" || !strings.HasPrefix(err.Message, "Invalid JSON: "):
		t.Errorf("%q: %s %q, want parse_error, Invalid JSON: …", text, err.Code, err.Message)
	case err.Field != "":
		t.Errorf("%q: field %q", text, err.Field)
	}
}

func TestNoJSON(t *testing.T) {
	for _, text := range []string{"", " ", "\n", "{not json", `{"raw_input":"a"} {}`, "\ufeff\ufeff" + `{"raw_input":"a"}`,
		"NaN",
		`{"raw_input":NaN}`, `{"iteration":Infinity,"raw_input":"a"}`, `{"iteration":-Infinity,"raw_input":"a"}`,
		"{\"raw_input\":\"\xff\"}", "{\"raw_input\":\"\xed\xa0\x80\"}", `{"raw_input":"a"}x`, `{"raw_input":"a",}`,
		`{'raw_input':'a'}`, `{"raw_input":"a"`, `{"raw_input":"` + "\n" + `"}`, `{"iteration":01,"raw_input":"a"}`,
		`{"iteration":+1,"raw_input":"a"}`, `{"iteration":1.,"raw_input":"a"}`, `{"raw_input":"\x41"}`, `// c` + "\n" + `{}`,
		`{"raw_input":"a"}` + "\x00", `[`, `"`} {
		broken(t, text)
	}
	process(t, "\ufeff"+`{"raw_input":"a"}`)
}

// TestNesting: 512 levels, the envelope's own included (envelope §6).
func TestNesting(t *testing.T) {
	deep := func(levels int) string {
		return `{"raw_input":"a","x":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
	}
	process(t, deep(512))
	broken(t, deep(513))
	process(t, `{"outputs":{"plan":{"x":`+strings.Repeat(`{"a":`, 509)+"1"+strings.Repeat("}", 509)+`}}}`)
	broken(t, `{"outputs":{"plan":{"x":`+strings.Repeat(`{"a":`, 510)+"1"+strings.Repeat("}", 510)+`}}}`)
}

func TestNoEnvelope(t *testing.T) {
	for _, text := range []string{`[1]`, `"x"`, `null`, `1`, `true`, `[]`, `{}`, `{"foo":1}`, `{"user_id":"u"}`,
		`{"session_id":"s","metadata":{}}`, `{"Envelope_id":"e"}`, `{"identity":"x"}`, `{"identity":[],"raw_input":"a"}`,
		`[{"raw_input":"a"}]`, `{"error":true,"code":"x","message":"y"}`} {
		out, err := step(t, text)
		if err == nil {
			t.Errorf("%s: accepted: %s", text, out)
		} else if err.Code != "invalid_envelope" || err.Message == "" {
			t.Errorf("%s: %s %q, want invalid_envelope", text, err.Code, err.Message)
		}
	}
}

func TestNestedNeeds(t *testing.T) {
	invalid(t, `{"identity":{},"pipeline":{},"bounds":{}}`, "identity.envelope_id")
	invalid(t, `{"identity":{"envelope_id":""},"pipeline":{},"bounds":{}}`, "identity.envelope_id")
	invalid(t, `{"identity":{"envelope_id":7},"pipeline":{},"bounds":{}}`, "identity.envelope_id")
	for _, raw := range []string{"null", "[]", `"x"`, "1"} {
		invalid(t, `{"identity":{"envelope_id":"e"},"pipeline":`+raw+`,"bounds":{}}`, "pipeline")
		invalid(t, `{"identity":{"envelope_id":"e"},"pipeline":{},"bounds":`+raw+`}`, "bounds")
	}
	invalid(t, `{"identity":{"envelope_id":"e"},"bounds":{}}`, "pipeline")
	invalid(t, `{"identity":{"envelope_id":"e"},"pipeline":{}}`, "bounds")
	for _, group := range []string{"interrupts", "execution", "audit"} {
		for _, raw := range []string{"[]", `"x"`, "1", "false"} {
			invalid(t, `{"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{},"`+group+`":`+raw+`}`, group)
		}
	}
}

func TestTimes(t *testing.T) {
	for _, s := range []string{"2025-12-10T10:00:00.123456", "2025-12-10T10:00:00Z", "2025-12-10t10:00:00z", "2025-12-10 10:00",
		"2025-12-10T10:00Z", "2025-12-10T10:00:00.1", "2025-12-10T10:00:00,123456789+01:00", "2025-12-10T10:00:00-0530",
		"2025-12-10T10:00:00+05", "2024-02-29T23:59:59Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z",
		"2025-12-10T10:00+01:00", "2000-02-29T00:00:00Z"} {
		taken(t, "received_at", `"`+s+`"`, "")
		taken(t, "created_at", `"`+s+`"`, "")
		taken(t, "completed_at", `"`+s+`"`, "")
	}
	for _, raw := range []string{`"yesterday"`, `12`, `"2025-13-01T00:00:00Z"`, `""`, `"2025-02-29T00:00:00Z"`, `"1900-02-29T00:00:00Z"`,
		`"2025-12-10"`, `"2025-12-10T"`, `"2025-12-10T24:00:00Z"`, `"2025-12-10T10:60:00Z"`, `"2025-12-10T10:00:61Z"`, `"2025-12-10T10:00:00.Z"`,
		`"2025-12-10T10:00:00.1234567890Z"`, `"2025-12-10T10:00:00+1"`, `"2025-12-10T10:00:00+1:00"`, `"2025-12-10T10:00:00Z "`,
		`" 2025-12-10T10:00:00Z"`, `"2025-12-10_10:00:00Z"`, `"2025-00-10T10:00:00Z"`, `"2025-12-00T10:00:00Z"`, `"2025-12-32T10:00:00Z"`,
		`"25-12-10T10:00:00Z"`, `"2025-12-10T10"`, `"2025-12-10T10:0"`, `"2025-12-10T10:00:00ZZ"`, `"2025-12-10T10:00:00+24:00"`,
		`"2025-12-10T10:00:00+01:60"`, `"2025-12-10T10:00:00+-1"`, `"2025-12-10T10:00:00+0a:00"`, `"2025-12-10T10:00:00+010"`,
		`"2025-12-10T10:00:00+01:0"`, `"2025-12-10T10:00:00+01:000"`, `"2025-12-10T10:00:00+01-00"`, `"2025-12-10T10:00:00+"`, `true`, `{}`} {
		refused(t, "received_at", raw)
		refused(t, "created_at", raw)
		refused(t, "completed_at", raw)
	}
	taken(t, "received_at", "", `"2026-01-02T03:04:05.000000Z"`)
	taken(t, "received_at", "null", `"2026-01-02T03:04:05.000000Z"`)
	taken(t, "received_at", `"2025-12-10T10:00:00\u005A"`, "")
	taken(t, "completed_at", "", "null")
	taken(t, "completed_at", "null", "")
	taken(t, "errors", `[{"timestamp":"yesterday"}]`, "")
	taken(t, "processing_history", `[{"started_at":12}]`, "")
}
