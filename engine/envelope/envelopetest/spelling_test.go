package envelopetest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// The same envelope spelled in other ways: none of them may change what the engine does.

// TestSpacing: space between tokens changes no byte of the reply.
func TestSpacing(t *testing.T) {
	check(t, 3000, func(t *rapid.T) {
		text := envelopes().Draw(t, "envelope")
		var spaced bytes.Buffer
		if err := json.Indent(&spaced, []byte(text), "\r\n", "\t "); err != nil {
			t.Fatalf("cannot indent: %v", err)
		}
		out, _ := process(t, text)
		if other, _ := process(t, spaced.String()); other != out {
			t.Fatalf("spaced:  %s\ncompact: %s", short(other), short(out))
		}
	})
}

// TestNamesOnce: no object of a reply has a name twice where none of the input had.
func TestNamesOnce(t *testing.T) {
	check(t, 5000, func(t *rapid.T) {
		text := envelopes().Draw(t, "envelope")
		out, _ := process(t, text)
		if name := repeated(json.NewDecoder(strings.NewReader(out))); name != "" {
			t.Fatalf("%s is there twice\ninput: %s\nreply: %s", name, text, out)
		}
	})
}

// repeated reads one value and gives a member name that one of its objects has twice, "" for none.
func repeated(d *json.Decoder) (name string) {
	token, _ := d.Token()
	delim, nested := token.(json.Delim)
	if !nested {
		return ""
	}
	for seen := map[json.Token]bool{}; d.More(); {
		if delim == '{' {
			key, _ := d.Token()
			if seen[key] {
				name = key.(string)
			}
			seen[key] = true
		}
		if inner := repeated(d); inner != "" {
			name = inner
		}
	}
	_, _ = d.Token()
	return name
}

// TestEscapes: every string, keys included, spelled in \u escapes.
func TestEscapes(t *testing.T) {
	check(t, 5000, func(t *rapid.T) {
		text := envelopes().Draw(t, "envelope")
		expect, _ := spec().process(parse(t, text))
		escaped := escape(text)
		_, got := process(t, escaped)
		want(t, escaped, expect, got)
	})
}

// escape spells every character of every string of a JSON text as a \u escape.
func escape(text string) string {
	var b strings.Builder
	for rest := text; rest != ""; {
		if rest[0] != '"' {
			b.WriteByte(rest[0])
			rest = rest[1:]
			continue
		}
		var s string
		d := json.NewDecoder(strings.NewReader(rest))
		if err := d.Decode(&s); err != nil {
			return err.Error()
		}
		rest = rest[d.InputOffset():]
		b.WriteByte('"')
		for _, unit := range utf16.Encode([]rune(s)) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
		b.WriteByte('"')
	}
	return b.String()
}

// TestDecoys: members repeated with another value first; the last one counts (envelope §6).
func TestDecoys(t *testing.T) {
	decoyed := rapid.Custom(func(t *rapid.T) string {
		d := draws{t}
		return d.decoys(d.envelope())
	})
	check(t, 5000, func(t *rapid.T) {
		text := decoyed.Draw(t, "envelope")
		expect, fault := spec().process(parse(t, text))
		if fault != nil {
			t.Fatalf("the generator made an invalid envelope: %s in %s", fault.field, text)
		}
		_, got := process(t, text)
		want(t, text, expect, got)
	})
}

// decoys prints a value with some members of its maps written twice.
func (d draws) decoys(v any) string {
	var parts []string
	switch v := v.(type) {
	case object:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			name := print(d.t, key)
			if d.chance(10) {
				parts = append(parts, name+":"+print(d.t, d.oddity()))
			}
			parts = append(parts, name+":"+d.decoys(v[key]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		for _, item := range v {
			parts = append(parts, d.decoys(item))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return print(d.t, v)
}
