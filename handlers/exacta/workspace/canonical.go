package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"

	"trunkline/codec/jsonx"
)

// maxDepth is how deep a document may nest (exacta §3.1).
const maxDepth = 32

// Canonical appends the canonical JSON of text to dst: keys sorted by code point, no spaces,
// raw UTF-8, numbers as they are spelled (exacta §4.18). text passed jsonx.Strict with a depth of
// at most 32.
func Canonical(dst, text []byte) []byte { return canonicalValue(dst, jsonx.ValueOf(text)) }

// canonicalWithout is Canonical of an object without some of its members.
func canonicalWithout(dst, object []byte, names ...string) []byte {
	return canonicalObject(dst, object, names)
}

func canonicalValue(dst []byte, v jsonx.Value) []byte {
	switch v.Kind {
	case jsonx.String:
		text, _ := v.Text()
		return jsonx.AppendString(dst, text)
	case jsonx.ObjectStart:
		return canonicalObject(dst, v.Raw, nil)
	case jsonx.ArrayStart:
		dst = append(dst, '[')
		list := jsonx.OpenArray(v.Raw)
		for e, ok := list.Next(); ok; e, ok = list.Next() {
			dst = canonicalValue(jsonx.AppendComma(dst), e)
		}
		return append(dst, ']')
	}
	return append(dst, v.Raw...)
}

func canonicalObject(dst, object []byte, without []string) []byte {
	type member struct {
		key   []byte
		value jsonx.Value
	}
	var members []member
	it := jsonx.OpenObject(object)
	for key, v, ok := it.Next(); ok; key, v, ok = it.Next() {
		key = jsonx.AppendUnescaped(nil, key)
		if !slices.Contains(without, string(key)) {
			members = append(members, member{key, v})
		}
	}
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	dst = append(dst, '{')
	for _, m := range members {
		dst = jsonx.AppendString(jsonx.AppendComma(dst), m.key)
		dst = canonicalValue(append(dst, ':'), m.value)
	}
	return append(dst, '}')
}

// Sum returns the SHA-256 of b as lower-case hex (exacta §4.18).
func Sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func sumOf(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
