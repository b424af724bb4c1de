package exchange

import (
	"fmt"
	"net/http"

	"trunkline/engine/envelope"
	"trunkline/handlers/internal/httpd"
)

// refusal is an answer that needs no engine.
type refusal struct {
	status  int
	code    envelope.ErrorCode
	message string
	hangUp  bool // the connection ends with this reply
	header  string
	value   string // of header, if there is one
}

// refusals are the refusals of one server; their texts name its limits.
type refusals struct {
	notFound, method, mediaType, encoding, internal                                    refusal // keep the connection
	stopping, headers, tooLarge, slowHead, timeout, version, badBody, short, ambiguous refusal // end it
}

func newRefusals(c HTTPConfig) refusals {
	r := refusals{
		notFound:  refuse(http.StatusNotFound, codeNotFound, "Not found: the only path is "+path),
		method:    refuse(http.StatusMethodNotAllowed, codeMethod, "Method not allowed: use POST"),
		mediaType: refuse(http.StatusUnsupportedMediaType, codeMediaType, "Unsupported media type: use application/json in UTF-8"),
		encoding:  refuse(http.StatusUnsupportedMediaType, codeMediaType, "Unsupported content encoding: send the body as it is"),
		internal:  refuse(http.StatusInternalServerError, codeInternal, "Internal error"),

		stopping: refuse(http.StatusServiceUnavailable, codeStopping, "The server is shutting down"),
		headers:  refuse(http.StatusRequestHeaderFieldsTooLarge, codeHeaders, "Request headers exceed %d bytes", c.MaxHeaderBytes),
		tooLarge: refuse(http.StatusRequestEntityTooLarge, codeTooLarge, "Request body exceeds %d bytes", c.MaxBodyBytes),
		slowHead: refuse(http.StatusRequestTimeout, codeTimeout, "Request headers not received within %v", c.ReadHeaderTimeout),
		timeout:  refuse(http.StatusRequestTimeout, codeTimeout, "Request body not received within %v", c.ReadBodyTimeout),
		version:  malformed("HTTP/1.1 is spoken here"),
		badBody:  malformed("bad chunked body"),
		short:    malformed("the body ends early"),

		ambiguous: malformed(httpd.TextAmbiguous),
	}
	r.method.header, r.method.value = "Allow", http.MethodPost
	for _, last := range [...]*refusal{&r.stopping, &r.headers, &r.tooLarge, &r.slowHead, &r.timeout} {
		last.hangUp = true
	}
	return r
}

// tooMany refuses what is beyond the requests in flight that may be.
func tooMany(most int) *refusal {
	r := refuse(http.StatusServiceUnavailable, codeOverloaded, "Too many requests in flight: at most %d", most)
	r.header, r.value = "Retry-After", "1"
	return &r
}

func refuse(status int, code envelope.ErrorCode, format string, limit ...any) refusal {
	return refusal{status: status, code: code, message: fmt.Sprintf(format, limit...)}
}

// malformed is the answer to bytes that are not the HTTP they should be.
func malformed(detail string) refusal {
	message := malformedPrefix
	if detail != "" {
		message += ": " + detail
	}
	return refusal{status: http.StatusBadRequest, code: codeBadRequest, message: message, hangUp: true}
}

func (r *refusal) append(dst []byte) []byte {
	e := envelope.Error{Code: r.code, Message: r.message}
	return e.Append(dst)
}
