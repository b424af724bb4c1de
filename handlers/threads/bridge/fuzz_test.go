package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// FuzzLines lets a client send anything: the bridge answers with messages only, and ends with its
// input.
func FuzzLines(f *testing.F) {
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	f.Add([]byte(hello + call(1, "ack_read", `{}`) + call(1, "ack_read", `{}`) + call(2, "nope", `[]`)))
	f.Add([]byte(hello + hello + ping + ping + "x\n[" + ping + "]\n" + `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"))
	f.Add([]byte(hello + call(1, "get_thread", `null`) + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n" + ping[:9]))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":null,"method":"tools/call"}` + "\n" + `{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{}}` + "\n\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		err := Run(t.Context(), bytes.NewReader(in), &out, Config{URL: "http://127.0.0.1:1", Token: func() (string, error) { return "", errors.New("none") }})
		if err != nil {
			t.Fatalf("%q: %v", in, err)
		}
		for line := range strings.Lines(out.String()) {
			if !json.Valid([]byte(line)) || line[0] != '{' && line[0] != '[' {
				t.Fatalf("%q is answered with %q", in, line)
			}
		}
	})
}
