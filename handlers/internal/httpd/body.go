package httpd

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
)

// The errors of ReadBody beside those of the body.
var (
	ErrTooLarge = errors.New("the body is over the limit")
	ErrNoSpace  = errors.New("no space for the body")
)

// firstBuffer is the first size of the buffer for a body.
const firstBuffer = 4 << 10

// Trusted is the largest buffer that a Content-Length alone can ask for. Shorter answers are not
// counted among what requests hold, either.
const Trusted = 64 << 10

// ReadBody reads a body of at most limit bytes to its end, into the memory of buf while it fits.
// announced is its Content-Length. fits reports whether so many bytes may be held; it is called
// before the buffer grows.
func ReadBody(body io.Reader, buf []byte, announced int64, limit int, fits func(bytes int) bool) ([]byte, error) {
	if want := int(min(announced, Trusted)); cap(buf) < want {
		buf = make([]byte, 0, want)
	}
	buf = buf[:0]
	for {
		if len(buf) == cap(buf) {
			if !fits(2 * cap(buf)) {
				return buf, ErrNoSpace
			}
			buf = append(make([]byte, 0, max(2*cap(buf), firstBuffer)), buf...)
		}
		n, err := body.Read(buf[len(buf):min(cap(buf), limit+1)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return buf, ErrTooLarge
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, err
		}
	}
}

// MaxKept is the largest buffer that a pool keeps: one large body must not stay for ever.
const MaxKept = 256 << 10

// Keep returns a buffer for another request, nil in place of a large one.
func Keep(b []byte) []byte {
	if cap(b) > MaxKept {
		return nil
	}
	return b
}

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
	if err != nil &&
		(!errors.Is(err, mime.ErrInvalidMediaParameter) || strings.Contains(strings.ToLower(field), "charset")) {
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
