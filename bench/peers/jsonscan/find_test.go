// Package jsonscan measures how long it takes to get the known members out of one request line,
// against the JSON libraries that are quick at it. It holds nothing but a benchmark:
//
//	go test -bench . -count 6 ./jsonscan
//
// trunkline's scan checks the whole line (grammar, UTF-8, depth, duplicates) in the same pass. Of
// the others fastjson checks the grammar but not the UTF-8; sonic's searcher goes through the line
// once per member and evaluates nothing behind what it found, so sonic-valid-searcher checks the line
// before. Besides the wall time each row has cpu-ns/op, the processor time of the thread: compare
// that on a machine that does other work.
package jsonscan

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/bytedance/sonic"
	"github.com/bytedance/sonic/ast"
	"github.com/valyala/fastjson"

	"trunkline/codec/jsonx"
)

// wanted are the four string members that are looked up.
var wanted = []string{"aid", "input_json", "idempotency_key", "request_id"}

// lines are requests as tool callers send them; the first two have 300 bytes.
var lines = []struct{ name, text string }{
	{"plain300", `{"aid":"AID.EMBED.TEXT.v1","input_json":"the quick brown fox jumps over the lazy dog, then sits down and waits for its supper..","ds_state":{},` +
		`"idempotency_key":"0f3c9d1e-77aa-4b52-9f0e-3d5b8a6c2e11","_lease_token":"lease_00112233445566778899aabbccddeeff","request_id":"req-000000000000000000000042"}`},
	{"nested300", `{"aid":"AID.MEMORY.QUERY.v1","input_json":"{\"stream\":\"notes\",\"query\":\"what is left\",\"max_bytes\":65536}",` +
		`"ds_state":{"slots":{"0":{"type":"text","provenance":"user","content":"hello"}},"removed_slots":[1,2]},` +
		`"idempotency_key":"0f3c9d1e-77aa-4b52-9f0e-3d5b8a6c2e11","request_id":"req-004242"}`},
	{"echo52", `{"aid":"AID.TEST.ECHO.v1","input_json":"{\"x\":1}"}`},
}

// finders fill got with the still escaped or unescaped contents of the wanted members; each keeps
// its scratch memory.
func finders() []finder {
	names, members := jsonx.NewNames(wanted...), make([]jsonx.Member, len(wanted))
	var parser fastjson.Parser
	nodes := make([]ast.Node, len(wanted))
	search := func(line []byte, got [][]byte) bool {
		s := ast.NewSearcher(unsafe.String(unsafe.SliceData(line), len(line)))
		for i, name := range wanted {
			got[i] = nil
			var err error
			if nodes[i], err = s.GetByPath(name); err == nil {
				got[i] = contents(&nodes[i])
			}
		}
		return true
	}
	return []finder{
		{"trunkline", func(line []byte, got [][]byte) bool {
			r, _ := names.Scan(line, 32, members)
			for i := range members {
				got[i] = members[i].Raw
			}
			return r == jsonx.ScanOK
		}},
		{"fastjson", func(line []byte, got [][]byte) bool {
			v, err := parser.ParseBytes(line)
			if err != nil {
				return false
			}
			for i, name := range wanted {
				got[i] = v.GetStringBytes(name)
			}
			return true
		}},
		{"sonic-searcher", search},
		{"sonic-valid-searcher", func(line []byte, got [][]byte) bool { return sonic.Valid(line) && search(line, got) }},
		{"sonic-root", func(line []byte, got [][]byte) bool {
			root, err := sonic.GetFromString(unsafe.String(unsafe.SliceData(line), len(line)))
			if err != nil {
				return false
			}
			for i, name := range wanted {
				got[i] = nil
				if node := root.Get(name); node.Exists() {
					got[i] = contents(node)
				}
			}
			return true
		}},
	}
}

type finder struct {
	name string
	find func(line []byte, got [][]byte) bool
}

// contents returns a string node's text between the quotes, as cheaply as sonic can: unparsed if it
// still is.
func contents(n *ast.Node) []byte {
	s, err := n.Raw()
	if err != nil || len(s) < 2 {
		return nil
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))[1 : len(s)-1]
}

func TestFindersAgree(t *testing.T) {
	for _, line := range lines {
		want := make([][]byte, len(wanted))
		for i, f := range finders() {
			got := make([][]byte, len(wanted))
			if !f.find([]byte(line.text), got) {
				t.Fatalf("%s refuses %s", f.name, line.name)
			}
			for k := range got {
				text := string(got[k])
				if strings.Contains(text, `\`) {
					text = string(jsonx.AppendUnescaped(nil, got[k]))
				}
				if i == 0 {
					want[k] = []byte(text)
				} else if text != string(want[k]) {
					t.Errorf("%s, %s: %s = %q, want %q", line.name, f.name, wanted[k], text, want[k])
				}
			}
		}
		if strings.HasSuffix(line.name, "300") && len(line.text) != 300 {
			t.Errorf("%s has %d bytes", line.name, len(line.text))
		}
	}
}

func BenchmarkFind(b *testing.B) {
	got := make([][]byte, len(wanted))
	for _, line := range lines {
		text := []byte(line.text)
		for _, f := range finders() {
			b.Run(line.name+"/"+f.name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				stop := threadTime(b)
				for range b.N {
					if !f.find(text, got) {
						b.Fatal("refused")
					}
				}
				stop()
			})
		}
	}
}
