package jsonx

// Compact takes the space between the tokens of checked text out, in place, and returns what remains: the front of b. Literals
// and strings stay as they are spelled. It does not allocate.
func Compact(b []byte) []byte {
	w, i := 0, 0
	for i < len(b) {
		c := b[i]
		switch {
		case c == '"':
			end := min(closingQuote(b, i+1)+1, len(b))
			if w != i {
				copy(b[w:], b[i:end])
			}
			w += end - i
			i = end
			continue
		case !isSpace(c):
			b[w] = c
			w++
		}
		i++
	}
	return b[:w]
}
