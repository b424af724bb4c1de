package fuzz

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// byteOrderMark is skipped before JSON text.
const byteOrderMark = "\uFEFF"

// validJSON is the rule of kernel-ipc §4.15: RFC 8259 in UTF-8, at most 128 levels.
func validJSON(text string) bool {
	return json.Valid([]byte(text)) && utf8.ValidString(text) && jsonLevels(text) <= 128
}

// jsonLevels counts the levels of valid JSON text.
func jsonLevels(text string) (deepest int) {
	level, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			level++
			deepest = max(deepest, level)
		case c == ']' || c == '}':
			level--
		}
	}
	return deepest
}

// jsonValue decodes valid JSON text by the rule of kernel-ipc §4.17: integers that fit 64 bits are
// integers, other numbers float64; one beyond the float range is nil.
func jsonValue(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic("not JSON: " + text)
	}
	return fromJSON(v)
}

var wholeText = regexp.MustCompile(`^-?[0-9]+$`)

func fromJSON(v any) any {
	switch v := v.(type) {
	case json.Number:
		return fromNumber(string(v))
	case []any:
		for i := range v {
			v[i] = fromJSON(v[i])
		}
	case map[string]any:
		o := object{}
		for k, e := range v {
			o = append(o, member{k, fromJSON(e)})
		}
		return o
	}
	return v
}

func fromNumber(text string) any {
	if wholeText.MatchString(text) {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return n
		}
	}
	f, _ := strconv.ParseFloat(text, 64)
	if math.IsInf(f, 0) {
		return nil
	}
	return f
}

// appendJSON writes a value of the model as JSON text, without spaces and with no more escapes than
// needed.
func appendJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case object:
		dst = append(dst, '{')
		for i, m := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(append(appendJSON(dst, m.key), ':'), m.val)
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, e)
		}
		return append(dst, ']')
	case string:
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(v)
		return append(dst, bytes.TrimRight(b.Bytes(), "\n")...)
	case *made:
		return appendJSON(dst, v.text())
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return append(dst, b...)
}
