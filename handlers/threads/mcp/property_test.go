package mcp

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestFrontOfDrawnMessages compares the front with the SDK on messages that are nearly ordinary.
func TestFrontOfDrawnMessages(t *testing.T) {
	s := newScripted()
	rapid.Check(t, func(t *rapid.T) {
		// Most values are the ordinary one, so that a message has few that are not.
		pick := func(label string, usual string, others ...string) string {
			if rapid.IntRange(0, 7).Draw(t, label) > 0 {
				return usual
			}
			return rapid.SampledFrom(others).Draw(t, label+" else")
		}
		maybe := func(label, text string) string { return pick(label, "", text) }
		version := rapid.SampledFrom(versions).Draw(t, "version")
		odd := []string{`null`, `1`, `-0`, `1.5e3`, `1e999`, `"x"`, `"\ud800"`, `[]`, `[1,[2]]`, `{}`, `{"a":1,"a":2}`, `{"a":{"b":[1e5]}}`, "\"\x01\"", "\"\xff\"", `x`, ``}
		inner := maybe("progress", `"progressToken":1`)
		if version >= latest {
			inner = strings.Join([]string{`"io.modelcontextprotocol/protocolVersion":` + pick("meta version", `"`+version+`"`, append(odd, `"2025-11-25"`)...),
				`"io.modelcontextprotocol/clientCapabilities":` + pick("capabilities", `{"roots":{"listChanged":true}}`, append(odd, `{"sampling":1}`, `{"roots":null}`, `{"sampling":{"tools":{}}}`, `{"elicitation":{"form":[]}}`)...),
				`"io.modelcontextprotocol/clientInfo":` + pick("client", `{"name":"n"}`, append(odd, `{"name":1}`, `{"icons":[]}`, `{"x":"y"}`)...),
				`"io.modelcontextprotocol/logLevel":` + pick("level", `"debug"`, odd...)}, ",")
		}
		params := `"name":` + pick("tool", `"get_thread"`, `"nope"`, `"get\u005fthread"`, `null`, `1`) +
			`,"arguments":` + pick("arguments", `{"thread_id":"<th>","n":1}`, append(odd, `{"thread_id":1e2}`, `{"thread_id":"a","x":1E5}`)...) +
			`,"_meta":` + pick("meta", "{"+inner+"}", odd...) + maybe("extra", `,"requestState":"x"`) + maybe("more", `,"name":"ack_read"`) + maybe("other", `,"x":1e999`)
		body := fmt.Sprintf(`{"jsonrpc":%s,"id":%s,"method":%s,"params":%s%s}%s`, pick("tag", `"2.0"`, `"1.0"`, `2`),
			pick("id", `7`, append(odd, `"<é>"`, `"a\n"`, `0`, `00`, `7.0`, `123456789012345678`)...), pick("method", `"tools/call"`, `"tools/list"`, `"nope"`, `"ping"`, `null`),
			pick("params", "{"+params+"}", odd...), maybe("error", `,"error":{}`)+maybe("result", `,"result":1`), maybe("behind", "\n {}"))
		lines := withVersion(version, pick("header name", "get_thread", "ack_read"))
		if version != "" {
			lines += head(maybe("header method", "\nMcp-Method: tools/list") + maybe("no header", "\n-Mcp-Name"))
		}
		compare(t, s, lines, body)
	})
}
