package exchange

import (
	"fmt"
	"net/http"

	"trunkline/engine/envelope"
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
	notFound, method, mediaType, encoding, overloaded, internal             refusal // keep the connection
	stopping, headers, tooLarge, slowHead, timeout, version, badBody, short refusal // end it
}

func newRefusals(c HTTPConfig) refusals {
	return refusals{
		notFound: refusal{status: http.StatusNotFound, code: codeNotFound, message: "Not found: the only path is " + path},
		method: refusal{
			status: http.StatusMethodNotAllowed, code: codeMethod, message: "Method not allowed: use POST",
			header: "Allow", value: http.MethodPost,
		},
		mediaType: refusal{
			status: http.StatusUnsupportedMediaType, code: codeMediaType,
			message: "Unsupported media type: use application/json in UTF-8",
		},
		encoding: refusal{
			status: http.StatusUnsupportedMediaType, code: codeMediaType,
			message: "Unsupported content encoding: send the body as it is",
		},
		overloaded: refusal{
			status: http.StatusServiceUnavailable, code: codeOverloaded,
			message: fmt.Sprintf("Too many requests in flight: at most %d", c.MaxInFlight), header: "Retry-After", value: "1",
		},
		internal: refusal{status: http.StatusInternalServerError, code: codeInternal, message: "Internal error"},

		stopping: refusal{
			status: http.StatusServiceUnavailable, code: codeStopping, message: "The server is shutting down", hangUp: true,
		},
		headers: refusal{
			status: http.StatusRequestHeaderFieldsTooLarge, code: codeHeaders,
			message: fmt.Sprintf("Request headers exceed %d bytes", c.MaxHeaderBytes), hangUp: true,
		},
		tooLarge: refusal{
			status: http.StatusRequestEntityTooLarge, code: codeTooLarge,
			message: fmt.Sprintf("Request body exceeds %d bytes", c.MaxBodyBytes), hangUp: true,
		},
		slowHead: refusal{
			status: http.StatusRequestTimeout, code: codeTimeout,
			message: fmt.Sprintf("Request headers not received within %v", c.ReadHeaderTimeout), hangUp: true,
		},
		timeout: refusal{
			status: http.StatusRequestTimeout, code: codeTimeout,
			message: fmt.Sprintf("Request body not received within %v", c.ReadBodyTimeout), hangUp: true,
		},
		version: malformed("HTTP/1.1 is spoken here"),
		badBody: malformed("bad chunked body"),
		short:   malformed("the body ends early"),
	}
}

// malformed is the answer to bytes that are not the HTTP they should be.
func malformed(detail string) refusal {
	message := malformedPrefix
	if detail != "" {
		message += ": " + detail
	}
	return refusal{status: http.StatusBadRequest, code: codeBadRequest, message: message, hangUp: true}
}

// append appends the error object.
func (r *refusal) append(dst []byte) []byte {
	e := envelope.Error{Code: r.code, Message: r.message}
	return e.Append(dst)
}
