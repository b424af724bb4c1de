package wire

import (
	"strings"

	"trunkline/codec/jsonx"
)

// AppendText appends a string with the escapes of exacta §3.1: those of jsonx.AppendString, and
// the two separators of lines, which end a line of JavaScript.
func AppendText(dst []byte, text string) []byte {
	if !strings.Contains(text, "\u2028") && !strings.Contains(text, "\u2029") {
		return jsonx.AppendString(dst, text)
	}
	dst = append(dst, '"')
	for text != "" {
		n := strings.IndexAny(text, "\u2028\u2029")
		if n < 0 {
			n = len(text)
		}
		end := len(dst)
		dst = jsonx.AppendString(dst, text[:n])
		dst = append(dst[:end], dst[end+1:len(dst)-1]...) // without the quotes
		if text = text[n:]; text != "" {
			dst = append(dst, `\u202`...)
			dst = append(dst, text[2]-0xa8+'8')
			text = text[3:]
		}
	}
	return append(dst, '"')
}

// AppendTexts appends an array of strings.
func AppendTexts(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendText(dst, s)
	}
	return append(dst, ']')
}
