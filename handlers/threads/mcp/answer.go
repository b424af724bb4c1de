package mcp

import (
	"strconv"

	"trunkline/codec/jsonx"
)

// serverMeta is _meta of every result of the newest revision.
const serverMeta = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"` + serverName + `","version":"` + serverVersion + `"}},`

// appendResult appends the answer to a tools/call as the SDK writes it. text is the result of the
// method, or its error envelope where failed is set: JSON without spaces.
func appendResult(dst []byte, m *message, newer bool, text []byte, failed bool) []byte {
	dst = append(appendStart(dst, m), `"result":{`...)
	if newer {
		dst = append(dst, serverMeta...)
	}
	dst = appendEscaped(append(dst, `"content":[{"type":"text","text":"`...), text, &quoted)
	if failed {
		dst = append(dst, `"}],"isError":true`...)
	} else {
		dst = appendEscaped(append(dst, `"}],"structuredContent":`...), text, &copied)
	}
	if newer {
		dst = append(dst, `,"resultType":"complete"`...)
	}
	return append(dst, `}}`...)
}

// appendError appends a JSON-RPC error as the answer to a message, to none if its id is not known.
func appendError(dst []byte, m *message, e *rpcError) []byte {
	dst = strconv.AppendInt(append(appendStart(dst, m), `"error":{"code":`...), int64(e.code), 10)
	return append(jsonx.AppendString(append(dst, `,"message":`...), e.message), `}}`...)
}

// appendStart appends the begin of an answer, with the id as the client wrote it.
func appendStart(dst []byte, m *message) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if m.id.Kind == jsonx.Absent {
		return append(dst, `null,`...)
	}
	return append(appendMember(dst, &m.id), ',')
}

// escapes are the bytes of a JSON text that are not written as they are.
type escapes [256]string

// The SDK writes results for pages, too: characters with a meaning in HTML are escaped. A text
// within a string has its quotes and backslashes escaped besides. JSON without spaces has no
// control characters.
var (
	copied = escapes{'<': `\u003c`, '>': `\u003e`, '&': `\u0026`, lead: `\u202`}
	quoted = escapes{'<': `\u003c`, '>': `\u003e`, '&': `\u0026`, lead: `\u202`, '"': `\"`, '\\': `\\`}
)

// lead and second are how U+2028 begins, and U+2029. Scripts take these for ends of lines.
const lead, second = 0xe2, 0x80

// appendEscaped appends text with what e has in place of its bytes.
func appendEscaped(dst, text []byte, e *escapes) []byte {
	from := 0
	for i := 0; i < len(text); i++ {
		with := e[text[i]]
		if with == "" {
			continue
		}
		if text[i] != lead {
			dst = append(append(dst, text[from:i]...), with...)
			from = i + 1
			continue
		}
		if i+2 < len(text) && text[i+1] == second && text[i+2]&^1 == 0xa8 {
			dst = append(append(append(dst, text[from:i]...), with...), '8'+text[i+2]&1)
			i += 2
			from = i + 1
		}
	}
	return append(dst, text[from:]...)
}
