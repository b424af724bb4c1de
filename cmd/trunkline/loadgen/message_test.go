package loadgen

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
)

const secret = 0x0123456789abcdef // run 01234567

// made is one request of a share, as text: for the kernel protocol its body as JSON.
func made(t *testing.T, protocol, body string, r request) string {
	t.Helper()
	target := Target{Protocol: protocol, Addr: "http://h:1"}
	r.secret = secret
	m, err := compile(&target, &Share{Name: "s.m", Weight: 1, Body: []byte(body)}, "01234567")
	if err != nil {
		t.Fatal(err)
	}
	out := m.append([]byte("before"), &r)[len("before"):]
	if protocol != ProtocolKernel {
		return string(out)
	}
	kind, payload, n := frame.Split(out, maxReply)
	var req mpack.Request
	var sc mpack.Scanner
	if p := sc.ParseRequest(payload, &req); kind != frame.Request || n != len(out) || p != mpack.NoProblem {
		t.Fatalf("no request: %x", out)
	}
	if id, ok := hexID(req.ID); !ok || id != r.id || string(req.Service) != "s" || string(req.Method) != "m" {
		t.Errorf("id %s, %s.%s", req.ID, req.Service, req.Method)
	}
	text, err := transcode.AppendJSON(nil, req.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPlaceholders(t *testing.T) {
	const thread = "th_01KHP2Q3W4X5Y6Z7A8B9C0D1E2"
	r := request{id: 0xabc00000d00f, seq: 123, conn: 45, owned: thread}
	f := func(protocol, body, want string) {
		t.Helper()
		if got := made(t, protocol, body, r); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	f(ProtocolKernel, `{}`, `{}`)
	f(ProtocolKernel, `{"a":"x{{seq}}y","b":"{{conn}}{{conn}}"}`, `{"a":"x000000000123y","b":"0004500045"}`)
	f(ProtocolKernel, `{"n":{{seq}},"m":[{{conn}}, {{seq}} ]}`, `{"n":123,"m":[45,123]}`)
	f(ProtocolKernel, `{"p":"{{pid}}","r":"{{run}}"}`, `{"p":"bench-01234567-00045","r":"01234567"}`)
	f(ProtocolKernel, `{"{{seq}}":{"a\"":"\\{{conn}}"}}`, `{"000000000123":{"a\"":"\\00045"}}`)
	f(ProtocolToolhost, "{\"aid\":\"A\",\n \"n\":{{seq}}, \"c\":\"{{conn}}\"}", `{"aid":"A","n":                123,"c":"00045"}`+"\n")
	f(ProtocolThreads, "{\"t\":\"{{thread}}\",\n\"n\":{{seq}},\"u\":\"{{conn}}{{thread}}\"}",
		`{"id":"abc00000d00f","method":"s.m","params":{"t":"`+thread+`","n":                123,"u":"00045`+thread+`"}}`+"\n")
	f(ProtocolHTTP, `{"n":{{seq}}}`, "Host: h:1\r\nUser-Agent: trunkline-bench\r\nContent-Type: application/json\r\nContent-Length: 25\r\n\r\n{\"n\":                123}")
}

func TestUUIDsAreFresh(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := make(map[string]bool)
	for seq := range int64(1000) {
		var body struct{ U string }
		if err := json.Unmarshal([]byte(made(t, ProtocolKernel, `{"u":"{{uuid}}"}`, request{seq: seq})), &body); err != nil {
			t.Fatal(err)
		}
		if !form.MatchString(body.U) || seen[body.U] {
			t.Fatalf("request %d: %s", seq, body.U)
		}
		seen[body.U] = true
	}
}

func TestPlaceholdersThatCannotBe(t *testing.T) {
	f := func(protocol, body, want string) {
		t.Helper()
		target := Target{Protocol: protocol, Addr: "http://h:1"}
		if _, err := compile(&target, &Share{Name: "s.m", Body: []byte(body)}, "00000000"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	f(ProtocolKernel, `{"a":"{{nope}}"}`, "placeholder {{nope")
	f(ProtocolKernel, `{"a":"{{seq"}`, "placeholder")
	f(ProtocolKernel, `{"a":{{uuid}}}`, "outside of a string")
	f(ProtocolKernel, `{"a":1{{seq}}}`, "no value there")
	f(ProtocolThreads, `{"a":{{thread}}}`, "outside of a string")
	f(ProtocolThreads, `{"a":1}}`, "JSON")
	f(ProtocolHTTP, `{"a":{{seq}}0}`, "no value there")
	f(ProtocolToolhost, `[1]`, "object")
}

func TestPaths(t *testing.T) {
	f := func(addr, want string) {
		t.Helper()
		out, err := encodeHTTP(&Target{Addr: addr}, []byte("{}"))
		if err != nil || !strings.HasPrefix(string(out), "POST "+want+" HTTP/1.1\r\nHost: h\r\n") {
			t.Errorf("%s: %s %v", addr, out, err)
		}
	}
	f("http://h", "/api/v1/process")
	f("http://h/", "/")
	f("http://h/x?y=1", "/x?y=1")
}

func TestDigits(t *testing.T) {
	b := make([]byte, 5)
	f := func(n uint64, pad byte, want string) {
		t.Helper()
		if putDecimal(b, n, pad); string(b) != want {
			t.Errorf("%d: %s", n, b)
		}
	}
	f(0, '0', "00000")
	f(0, ' ', "    0")
	f(99999, ' ', "99999")
	f(100, '0', "00100")
	id := make([]byte, idWidth)
	for _, n := range []uint64{0, 1, 0xf, 0x123456789abc, 1<<idBits - 1} {
		putHex(id, n)
		if got, ok := hexID(id); !ok || got != n {
			t.Errorf("%x: %s, %x %v", n, id, got, ok)
		}
	}
	for _, bad := range []string{"", "0", "00000000000g", "-00000000001", "0000000000000"} {
		if _, ok := hexID([]byte(bad)); ok {
			t.Error(bad)
		}
	}
}
