package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/fuzz/rounds"
)

// wasmProgram is a tool as a WASI command: it reads the request line and obeys the input.
const wasmProgram = `package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

func main() {
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	out := ""
	switch {
	case strings.Contains(line, "spin"):
		for {
		}
	case strings.Contains(line, "exit"):
		fmt.Fprint(os.Stderr, "bye")
		os.Exit(3)
	case strings.Contains(line, "grow"):
		var keep [][]byte
		for {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = 1
			}
			keep = append(keep, b)
		}
	case strings.Contains(line, "garbage"):
		fmt.Println("garbage")
		return
	case strings.Contains(line, "look"):
		_, err := os.ReadFile("/etc/hostname")
		_, err2 := os.ReadDir("/")
		out = fmt.Sprint(err != nil, err2 != nil, len(os.Environ()))
	default:
		out = strings.TrimSpace(line)
	}
	b, _ := json.Marshal(map[string]string{"status": "OK", "output_json": out, "error": ""})
	fmt.Println(string(b))
}
`

// TestWasm runs a WASI command module as an external tool (toolhost §4.9).
func TestWasm(t *testing.T) {
	if !rounds.Long() {
		t.Skip("compiles the standard library for WebAssembly: make test-long")
	}
	s := newScript(t, stdio, "wasm")
	s.put("src/main.go", wasmProgram)
	s.put("src/go.mod", "module example.test/tool\n\ngo 1.21\n")
	build := exec.Command("go", "build", "-o", filepath.Join(s.root, "tool.wasm"), ".")
	build.Dir, build.Env = filepath.Join(s.root, "src"), append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-mod=mod")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("cannot build a module: %v: %s", err, out)
	}
	tool := `{"aid":"AID.WASM.%s.v1","name":"w","deterministic":false,"tags":["tag.w"],"side_effects":["none"],"estimate_model":{"mode":"InfinityBound"},"inputs_schema":{},"outputs_schema":{},"exec":{"kind":"wasm","module":"%s","timeout_ms":%d}}`
	s.put("w.json", `{"toolpack_id":"toolpack.w","toolpack_version":"1","trust_tier":"tier0_builtin","tools":[`+
		fmt.Sprintf(tool, "TOOL", "tool.wasm", 20000)+","+fmt.Sprintf(tool, "FAST", "tool.wasm", 3000)+","+fmt.Sprintf(tool, "GONE", "none.wasm", 1000)+`]}`)
	c := serve(t, stdio, s.root, nil, "--serve", "w.json", "--breaker-threshold", "100").io
	f := func(aid, do, part string) {
		t.Helper()
		say1(c, `{"aid":"AID.WASM.`+aid+`.v1","inputs":{"do":"`+do+`"}}`)
		got := c.next(30 * time.Second)
		if strings.Contains(got, "wasm support not built") {
			t.Skip("an optional feature")
		}
		checkReply(t, do, got)
		if !strings.Contains(got, part) {
			t.Errorf("%s: want %s, got %s", do, part, clip(got))
		}
	}
	f("TOOL", "mirror", `"output_json":"{\"aid\":\"AID.WASM.TOOL.v1\",\"input_json\":\"{\\\"do\\\":\\\"mirror\\\"}\",\"ds_state\":{\"slots\":{}}}"`)
	f("TOOL", "look", `"output_json":"true true 0"`)
	f("TOOL", "exit", `"error":"toolhost exit 3: bye"`)
	f("TOOL", "garbage", `"type":"parse_error"`)
	f("TOOL", "grow", `"type":"crash"`)
	f("FAST", "spin", `"error":"toolhost timed out for AID.WASM.FAST.v1"`)
	f("GONE", "mirror", `"type":"not_found"`)
	f("TOOL", "look", `"status":"OK"`)
}
