package wire

import "trunkline/codec/jsonx"

// walk looks in text, which is JSON, for what a message must not have beside broken syntax: a key
// twice in one object, and an escape of half a character (exacta §2.1, §3.1). It is for messages
// that jsonx.Strict refuses for another reason, and allocates.
func walk(text []byte) jsonx.Kind {
	var w jsonx.Walker
	w.Start(text)
	var room [maxDepth]map[string]struct{}
	open := room[:0] // nil for an array
	for {
		kind, raw := w.Step()
		switch kind {
		case jsonx.End:
			return jsonx.Fine
		case jsonx.ObjectStart:
			open = append(open, make(map[string]struct{}))
		case jsonx.ArrayStart:
			open = append(open, nil)
		case jsonx.ObjectEnd, jsonx.ArrayEnd:
			open = open[:len(open)-1]
		case jsonx.String, jsonx.Key:
			if hasHalf(raw) {
				return jsonx.LoneSurrogate
			}
			if kind == jsonx.String {
				continue
			}
			key := string(jsonx.AppendUnescaped(nil, raw))
			keys := open[len(open)-1]
			if _, twice := keys[key]; twice {
				return jsonx.DuplicateKey
			}
			keys[key] = struct{}{}
		}
	}
}

// hasHalf reports whether raw, the contents of a checked string, has an escape of half a character.
func hasHalf(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		unit := hex4(raw[i+1:])
		i += 4
		switch {
		case unit>>10 == 0xdc00>>10:
			return true
		case unit>>10 != 0xd800>>10:
			continue
		}
		if len(raw) < i+7 || raw[i+1] != '\\' || raw[i+2] != 'u' || hex4(raw[i+3:])>>10 != 0xdc00>>10 {
			return true
		}
		i += 6
	}
	return false
}

// hex4 reads four hexadecimal digits.
func hex4(b []byte) (n int) {
	for _, c := range b[:4] {
		n = n<<4 | int(hexValues[c])
	}
	return n
}
