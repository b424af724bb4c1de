package jsonx

import "bytes"

// TrimBOM returns b without a leading byte order mark, which every surface skips before a text from
// outside (RFC 8259, section 8.1). A second one is no JSON.
func TrimBOM(b []byte) []byte {
	if len(b) > 0 && b[0] == byteOrderMark[0] {
		return bytes.TrimPrefix(b, byteOrderMark)
	}
	return b
}

var byteOrderMark = []byte("\uFEFF")
