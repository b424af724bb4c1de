package mcp

import (
	"bytes"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"trunkline/codec/jsonx"
)

// maxIDDigits bounds a number that names a message, in bytes.
const maxIDDigits = 64

// The revision from which on a request has to name itself in its header and in _meta, and the
// older ones. The SDK serves these and no others.
const newEra = "2026-07-28"

// isOldEra reports whether a header names an older revision.
func isOldEra(version string) bool {
	switch version {
	case "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05":
		return true
	}
	return false
}

// Members of a message, of its params and of its _meta.
var (
	messageNames = jsonx.NewNames("jsonrpc", "id", "method", "params")
	paramsNames  = jsonx.NewNames("name", "arguments", "_meta", "inputResponses", "requestState")
	metaNames    = jsonx.NewNames("io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities",
		"io.modelcontextprotocol/clientInfo")
)

// rpcError is a JSON-RPC error with the status of HTTP that it has.
type rpcError struct {
	status, code int
	message      string
}

// The errors of texts that are no message.
var (
	errParse      = &rpcError{http.StatusBadRequest, jsonrpc.CodeParseError, "the text is not one JSON value"}
	errNotMessage = &rpcError{http.StatusBadRequest, jsonrpc.CodeInvalidRequest,
		`a message is an object with "jsonrpc":"2.0" and a method`}
	errID = &rpcError{http.StatusBadRequest, jsonrpc.CodeInvalidRequest,
		"id is neither a string nor an integer of at most 64 bytes"}
	errNeedsID = &rpcError{http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "a call of this method needs an id"}
	errTwice   = &rpcError{http.StatusBadRequest, jsonrpc.CodeInvalidRequest,
		"an object of the message has a name twice"}
	errParams       = &rpcError{http.StatusBadRequest, jsonrpc.CodeInvalidParams, "params is not an object"}
	errNoMethod     = &rpcError{http.StatusOK, jsonrpc.CodeMethodNotFound, notFound}
	errNoMethodPage = &rpcError{http.StatusNotFound, jsonrpc.CodeMethodNotFound, notFound} // of the newest revision
)

// message is one message of a client. Its texts are parts of the text that was scanned.
type message struct {
	id      jsonx.Member // Absent: none that can be answered to
	method  jsonx.Member
	params  jsonx.Member
	meta    jsonx.Member
	version jsonx.Member // that _meta names
	tool    []byte
	args    []byte
	checked bool // the text passed a jsonx.Strict

	top   [4]jsonx.Member // scratch
	inner [5]jsonx.Member
}

// scan reads a message. An error is the answer to it.
func (m *message) scan(text []byte, strict *jsonx.Strict) *rpcError {
	*m = message{}
	p := strict.Scan(messageNames, text, jsonx.MaxDepth, m.top[:])
	id := &m.top[1]
	twice := p.Kind == jsonx.DuplicateKey
	switch p.Kind {
	case jsonx.Fine:
		m.checked = true
	case jsonx.NotObject:
		return errNotMessage
	case jsonx.DuplicateKey:
	case jsonx.ForbiddenKey, jsonx.LoneSurrogate, jsonx.LongNumber: // the reader of the member refuses it
		r, _ := messageNames.Scan(text, jsonx.MaxDepth, m.top[:])
		twice = r == jsonx.ScanDuplicate
	default:
		return errParse
	}
	if validID(id) {
		m.id = *id
	}
	m.method, m.params = m.top[2], m.top[3]
	switch version := &m.top[0]; {
	case twice:
		return errTwice
	case id.Kind != jsonx.Absent && m.id.Kind == jsonx.Absent:
		return errID
	case version.Kind != jsonx.String || string(version.Raw) != "2.0" || m.method.Kind != jsonx.String:
		return errNotMessage
	case m.params.Kind == jsonx.Null:
		m.params = jsonx.Member{}
	case m.params.Kind == jsonx.ObjectStart:
		if r, _ := paramsNames.Scan(m.params.Raw, jsonx.MaxDepth, m.inner[:]); r == jsonx.ScanDuplicate {
			return errTwice
		}
	case m.params.Kind != jsonx.Absent:
		return errParams
	}
	if m.meta = m.inner[2]; m.meta.Kind == jsonx.ObjectStart {
		var out [3]jsonx.Member
		metaNames.Scan(m.meta.Raw, jsonx.MaxDepth, out[:])
		m.version = out[0]
	}
	if m.id.Kind == jsonx.Absent && offered(m.method.Raw) {
		return errNeedsID
	}
	return nil
}

// validID reports whether a message is named so that an answer can repeat it: by a string, or by an
// integer in any spelling.
func validID(id *jsonx.Member) bool {
	if id.Kind != jsonx.Number {
		return id.Kind == jsonx.String
	}
	digits := bytes.TrimPrefix(id.Raw, []byte{'-'})
	if bytes.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' }) {
		_, ok := jsonx.Integral(id.Raw)
		return ok && len(id.Raw) <= maxIDDigits
	}
	return len(id.Raw) <= maxIDDigits
}

// appendMember appends a value as it is in its text.
func appendMember(dst []byte, m *jsonx.Member) []byte {
	if m.Kind == jsonx.String {
		return append(append(append(dst, '"'), m.Raw...), '"')
	}
	return append(dst, m.Raw...)
}

// ordinary reports whether the message is a call of a tool of a revision that is served,
// and takes its tool and its arguments.
func (m *message) ordinary(newer bool) bool {
	name, args := &m.inner[0], &m.inner[1]
	if string(m.method.Raw) != "tools/call" || m.params.Kind == jsonx.Absent ||
		name.Kind != jsonx.String || name.Escaped ||
		m.inner[3].Kind != jsonx.Absent || m.inner[4].Kind != jsonx.Absent {
		return false
	}
	m.tool = name.Raw
	switch {
	case args.Kind == jsonx.Absent, args.Kind == jsonx.Null:
		m.args = noArguments
	case args.Kind == jsonx.ObjectStart: // also with numbers that the SDK cannot decode
		m.args = args.Raw
	default:
		return false
	}
	if m.meta.Kind == jsonx.Absent {
		return !newer
	}
	return m.meta.Kind == jsonx.ObjectStart && plainNumbers(m.meta.Raw) && scanMeta(m.meta.Raw, newer)
}

// noArguments are those of a call without any.
var noArguments = []byte(`{}`)

// scanMeta reads _meta, and reports whether it is ordinary.
func scanMeta(meta []byte, newer bool) bool {
	var members [3]jsonx.Member
	if r, _ := metaNames.Scan(meta, jsonx.MaxDepth, members[:]); r != jsonx.ScanOK {
		return false
	}
	version, capabilities, client := &members[0], &members[1], &members[2]
	if !newer {
		return version.Kind == jsonx.Absent
	}
	return version.Kind == jsonx.String && string(version.Raw) == newEra &&
		capabilities.Kind == jsonx.ObjectStart && plainCapabilities(capabilities.Raw, 0) &&
		(client.Kind == jsonx.Absent || client.Kind == jsonx.ObjectStart && plainClient(client.Raw))
}

// plainNumbers reports that no number in a text overflows.
func plainNumbers(text []byte) bool {
	var w jsonx.Walker
	w.Start(text)
	for {
		switch kind, raw := w.Step(); kind {
		case jsonx.End:
			return true
		case jsonx.Number:
			if len(raw) > maxIDDigits || bytes.ContainsAny(raw, "eE") {
				return false
			}
		}
	}
}

// maxCapabilityDepth bounds how deep ordinary capabilities are nested.
const maxCapabilityDepth = 4

// plainCapabilities reports that the SDK decodes capabilities, whatever they are called: all of
// them are objects, and those that it expects to be boolean are.
func plainCapabilities(object []byte, depth int) bool {
	o := jsonx.OpenObject(object)
	for {
		key, v, ok := o.Next()
		switch {
		case !ok:
			return true
		case string(key) == "listChanged":
			if v.Kind != jsonx.True && v.Kind != jsonx.False {
				return false
			}
		case v.Kind != jsonx.ObjectStart || depth == maxCapabilityDepth || bytes.IndexByte(key, '\\') >= 0 ||
			!plainCapabilities(v.Raw, depth+1):
			return false
		}
	}
}

// plainClient reports that the SDK decodes the description of a client: it has texts only.
func plainClient(object []byte) bool {
	o := jsonx.OpenObject(object)
	for {
		key, v, ok := o.Next()
		switch {
		case !ok:
			return true
		case v.Kind != jsonx.String || string(key) == "icons" || bytes.IndexByte(key, '\\') >= 0:
			return false
		}
	}
}
