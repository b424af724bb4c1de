package httpd

import (
	"errors"
	"mime"
	"net/http"
	"strings"
)

// HeaderBytes is the size of the header fields as "Name: value" and a line end each. net/http's own
// limit lets up to 4 KiB more pass and counts the request line too.
func HeaderBytes(r *http.Request) int {
	n := len("Host: ") + len(r.Host) + len("\r\n")
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(": ") + len(v) + len("\r\n")
		}
	}
	return n
}

// TextType returns the media type in a Content-Type. ok is false where it cannot be read, and where
// it names another character set than UTF-8. Other parameters are ignored.
func TextType(field string) (media string, ok bool) {
	media, params, err := mime.ParseMediaType(field)
	if err != nil && (!errors.Is(err, mime.ErrInvalidMediaParameter) || strings.Contains(strings.ToLower(field), "charset")) {
		return "", false
	}
	charset, set := params["charset"]
	return media, !set || strings.EqualFold(charset, "utf-8")
}

// IsIdentity reports whether the fields of Content-Encoding leave a body as it is.
func IsIdentity(fields []string) bool {
	for _, f := range fields {
		if !strings.EqualFold(f, "identity") {
			return false
		}
	}
	return true
}
