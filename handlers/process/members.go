package process

import (
	"bytes"

	"trunkline/codec/jsonx"
)

// sameKey reports whether key, the text between a member's quotes, means name. It does not allocate unless key has escapes.
func sameKey(key []byte, name string) bool {
	if bytes.IndexByte(key, '\\') < 0 {
		return string(key) == name
	}
	// An escape of one ASCII character is at most six bytes long.
	return len(key) <= 6*len(name) && string(jsonx.AppendUnescaped(nil, key)) == name
}

// hasMember reports whether the object has a member whose key matches.
func hasMember(object []byte, match func(key []byte) bool) bool {
	o := jsonx.OpenObject(object)
	for {
		key, _, ok := o.Next()
		if !ok || match(key) {
			return ok
		}
	}
}

// appendWithout appends object without the members whose keys match; the others are copied byte for byte, in their order.
func appendWithout(dst, object []byte, match func(key []byte) bool) []byte {
	dst = append(dst, '{')
	first := true
	for o := jsonx.OpenObject(object); ; {
		key, v, ok := o.Next()
		if !ok {
			return append(dst, '}')
		}
		if match(key) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(append(dst, '"'), key...), '"', ':')
		dst = append(dst, v.Raw...)
	}
}

// compact drops the space between the tokens of a checked JSON text, in place, and returns what is left. Values that the engine
// only copies come with the spacing of their sender, line ends included; readers of stdout take one line.
func compact(b []byte) []byte {
	i := spaceAt(b, 0)
	out := b[:i]
	for i < len(b) {
		if b[i] <= ' ' {
			i++
			continue
		}
		end := spaceAt(b, i)
		out = append(out, b[i:end]...)
		i = end
	}
	return out
}

// spaceAt returns the offset of the first space outside of strings, len(b) if there is none; i is outside of strings.
func spaceAt(b []byte, i int) int {
	for i < len(b) && b[i] > ' ' {
		if b[i] == '"' {
			i = closingQuote(b, i)
		}
		i++
	}
	return min(i, len(b))
}

// closingQuote returns the offset of the quote that ends the string whose opening quote is at open: the first one after an even
// number of backslashes.
func closingQuote(b []byte, open int) int {
	for i := open + 1; ; i++ {
		n := bytes.IndexByte(b[min(i, len(b)):], '"')
		if n < 0 {
			return len(b)
		}
		i += n
		escapes := 0
		for b[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
}
