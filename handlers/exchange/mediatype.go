package exchange

import (
	"errors"
	"mime"
	"net/http"
	"strings"
)

// isJSON reports whether the body is declared as JSON in UTF-8, or not declared (envelope §2.3).
func isJSON(h http.Header) bool {
	given := h["Content-Type"]
	switch {
	case len(given) == 0:
		return true
	case len(given) > 1:
		return false
	case given[0] == contentType[0]:
		return true
	}
	media, params, err := mime.ParseMediaType(given[0])
	if err != nil && (!errors.Is(err, mime.ErrInvalidMediaParameter) || strings.Contains(strings.ToLower(given[0]), "charset")) {
		return false // any parameters but an unknown character set
	}
	charset, said := params["charset"]
	return isJSONType(media) && (!said || strings.EqualFold(charset, "utf-8"))
}

// isJSONType knows application/json and application/*+json, lower-case.
func isJSONType(media string) bool {
	sub, ok := strings.CutPrefix(media, "application/")
	if !ok {
		return false
	}
	return sub == "json" || len(sub) > len("+json") && strings.HasSuffix(sub, "+json")
}

// isPlain reports whether the body is not compressed or otherwise encoded.
func isPlain(h http.Header) bool {
	for _, codings := range h["Content-Encoding"] {
		for coding := range strings.SplitSeq(codings, ",") {
			if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
				return false
			}
		}
	}
	return true
}
