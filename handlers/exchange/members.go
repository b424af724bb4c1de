package exchange

import (
	"bytes"

	"trunkline/codec/jsonx"
)

// sameKey reports whether key, the text between a member's quotes, means name. It allocates only
// for escapes.
func sameKey(key []byte, name string) bool {
	if bytes.IndexByte(key, '\\') < 0 {
		return string(key) == name
	}
	// An escape of one ASCII character is at most six bytes long.
	return len(key) <= 6*len(name) && string(jsonx.AppendUnescaped(nil, key)) == name
}

// appendWithout appends object without the members whose keys match; the others are copied in
// order.
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
