package kernel

// appendMember appends key, which includes the punctuation, and text as a JSON string.
func appendMember(dst []byte, key string, text []byte) []byte {
	dst = append(dst, key...)
	dst = append(dst, '"')
	dst = appendEscaped(dst, text)
	return append(dst, '"')
}

// appendEscaped appends valid UTF-8 text as the inside of a JSON string (RFC 8259): quote,
// backslash and control characters are escaped, everything else stays as it is.
func appendEscaped(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	start := 0
	for i, c := range text {
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, text[start:]...)
}
