package mcp

import (
	"bytes"

	"trunkline/codec/jsonx"
)

// scanDepth is how deep an ordinary message may be nested.
const scanDepth = 100

// maxPlainID bounds the identifier of an ordinary message, maxPlainDigits one that is a number.
const (
	maxPlainID     = 64
	maxPlainDigits = 15
)

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

// kind is what a body is.
type kind uint8

const (
	unusual   kind = iota // for the SDK
	toolCall              // an ordinary tools/call
	unoffered             // a call of a method that is not served
	trailing              // a message with something behind it, which the SDK would not see
)

// Members of a message, of its params and of its _meta.
var (
	messageNames = jsonx.NewNames("jsonrpc", "id", "method", "params", "result", "error")
	paramsNames  = jsonx.NewNames("name", "arguments", "_meta", "inputResponses", "requestState")
	metaNames    = jsonx.NewNames("io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities",
		"io.modelcontextprotocol/clientInfo")
)

// message is the body of a request, as far as it is ordinary. Its texts are parts of the body.
type message struct {
	id   []byte
	text bool // id is a text; it is as in the body, without its quotes
	tool []byte
	args []byte

	members [6]jsonx.Member // scratch
}

// scan reads a body. newer is set for a request of the newest revision. What scan does not know the
// SDK to accept is unusual.
func (m *message) scan(body []byte, newer bool) kind {
	top := m.members[:messageNames.Len()]
	if r, _ := messageNames.Scan(body, scanDepth, top); r != jsonx.ScanOK {
		if r == jsonx.ScanInvalid && jsonx.Check(body, scanDepth).Kind == jsonx.ExtraData {
			return trailing
		}
		return unusual
	}
	version, id, name, params := &top[0], &top[1], &top[2], top[3]
	plain := m.identify(id)
	switch {
	case version.Kind != jsonx.String || string(version.Raw) != "2.0" || name.Kind != jsonx.String || name.Escaped ||
		top[4].Kind != jsonx.Absent || top[5].Kind != jsonx.Absent:
	case !offered(name.Raw) && (id.Kind == jsonx.String || id.Kind == jsonx.Number): // of whatever form
		return unoffered
	case plain && string(name.Raw) == "tools/call" && params.Kind == jsonx.ObjectStart && m.scanParams(params.Raw, newer):
		return toolCall
	}
	return unusual
}

// identify takes the id of a call that is written as the SDK writes it, too.
func (m *message) identify(id *jsonx.Member) bool {
	m.id, m.text = id.Raw, id.Kind == jsonx.String
	switch id.Kind {
	case jsonx.String:
		if id.Escaped || len(id.Raw) == 0 || len(id.Raw) > maxPlainID {
			return false
		}
		for _, c := range id.Raw {
			if c < ' ' || c > '~' {
				return false
			}
		}
		return true
	case jsonx.Number:
		if len(id.Raw) > maxPlainDigits || id.Raw[0] == '0' && len(id.Raw) > 1 {
			return false
		}
		for _, c := range id.Raw {
			if c < '0' || c > '9' {
				return false
			}
		}
		return true
	}
	return false
}

// scanParams reads the params of a tools/call, and reports whether they are ordinary.
func (m *message) scanParams(params []byte, newer bool) bool {
	members := m.members[:paramsNames.Len()]
	if r, _ := paramsNames.Scan(params, scanDepth, members); r != jsonx.ScanOK {
		return false
	}
	name, args, meta := &members[0], &members[1], members[2]
	if name.Kind != jsonx.String || name.Escaped || members[3].Kind != jsonx.Absent || members[4].Kind != jsonx.Absent {
		return false
	}
	m.tool = name.Raw
	switch {
	case args.Kind == jsonx.Absent:
		m.args = noArguments
	case args.Kind == jsonx.ObjectStart && (!newer || plainNumbers(args.Raw)): // the newest revision decodes them
		m.args = args.Raw
	default:
		return false
	}
	if meta.Kind == jsonx.Absent {
		return !newer
	}
	return meta.Kind == jsonx.ObjectStart && plainNumbers(meta.Raw) && m.scanMeta(meta.Raw, newer)
}

// noArguments are those of a call without any.
var noArguments = []byte(`{}`)

// scanMeta reads _meta, and reports whether it is ordinary.
func (m *message) scanMeta(meta []byte, newer bool) bool {
	members := m.members[:metaNames.Len()]
	if r, _ := metaNames.Scan(meta, scanDepth, members); r != jsonx.ScanOK {
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
			if len(raw) > maxPlainID || bytes.ContainsAny(raw, "eE") {
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
		case v.Kind != jsonx.ObjectStart || depth == maxCapabilityDepth || bytes.IndexByte(key, '\\') >= 0 || !plainCapabilities(v.Raw, depth+1):
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
