package tools

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"trunkline/handlers/toolhost/dsstate"
	"trunkline/handlers/toolhost/tool"
)

const read = "AID.FILE.READ.v1"

// readOutput is the output of FILE.READ for a file in the root.
func readOutput(path, resolved, data string, truncated bool) string {
	return fmt.Sprintf(`{"path":%s,"resolved":%s,"bytes":%d,"truncated":%v,"content_b64":"%s"}`,
		quote(path), quote(resolved), len(data), truncated, base64.StdEncoding.EncodeToString([]byte(data)))
}

func TestFileRead(t *testing.T) {
	b := newBench(t)
	b.write("base/q\"uote.txt", "x")
	b.write("base/empty", "")
	f := func(input, path, resolved, data string, truncated bool) {
		t.Helper()
		out := readOutput(path, resolved, data, truncated)
		s := b.want(read, input, out)
		b.wantSlot(s, 0, dsstate.Artifact{Type: "file_read", Provenance: "fs:read", Content: out, Size: int64(len(data))})
	}
	f(`{"path":"a.txt"}`, "a.txt", "<base>/a.txt", "hello", false)
	f(`{"path":".//sub/./../sub//b.txt"}`, ".//sub/./../sub//b.txt", "<base>/sub/b.txt", "deep", false)
	f(`{"path":"<base>/sub/b.txt"}`, "<base>/sub/b.txt", "<base>/sub/b.txt", "deep", false)
	f(`{"path":"nowhere/../a.txt"}`, "nowhere/../a.txt", "<base>/a.txt", "hello", false)
	f(`{"path":"q\"uote.txt"}`, "q\"uote.txt", "<base>/q\"uote.txt", "x", false)
	f(`{"path":"empty"}`, "empty", "<base>/empty", "", false)
	f(`{"path":"a.txt","max_bytes":2}`, "a.txt", "<base>/a.txt", "he", true)
	f(`{"path":"a.txt","max_bytes":5}`, "a.txt", "<base>/a.txt", "hello", false)
	f(`{"path":"a.txt","max_bytes":4}`, "a.txt", "<base>/a.txt", "hell", true)
	f(`{"path":"a.txt","max_bytes":0}`, "a.txt", "<base>/a.txt", "hello", false)
	f(`{"path":"a.txt","max_bytes":"2","offset":"2"}`, "a.txt", "<base>/a.txt", "hello", false)
	f(`{"path":"a.txt","offset":3}`, "a.txt", "<base>/a.txt", "lo", false)
	f(`{"path":"a.txt","offset":1,"max_bytes":3}`, "a.txt", "<base>/a.txt", "ell", true)
	f(`{"path":"a.txt","offset":5}`, "a.txt", "<base>/a.txt", "", false)
	f(`{"path":"a.txt","offset":6}`, "a.txt", "<base>/a.txt", "", false)
	f(`{"path":"a.txt","offset":9223372036854775807}`, "a.txt", "<base>/a.txt", "", false)
	f(`{"path":"a.txt","offset":-1}`, "a.txt", "<base>/a.txt", "hello", false)
	f(`{"path":"a.txt","max_bytes":9223372036854775807}`, "a.txt", "<base>/a.txt", "hello", false)
}

func TestFileReadLimits(t *testing.T) {
	b := newBench(t)
	b.write("base/large", strings.Repeat("x", readMax+1))
	f := func(input string, n int, truncated bool) {
		t.Helper()
		b.want(read, input, readOutput("large", b.path("base/large"), strings.Repeat("x", n), truncated))
	}
	f(`{"path":"large"}`, 262144, true)
	f(`{"path":"large","max_bytes":-1}`, 262144, true)
	f(`{"path":"large","max_bytes":368640}`, 368640, true)
	f(`{"path":"large","max_bytes":368641}`, 368640, true)
	f(`{"path":"large","max_bytes":368641,"offset":1}`, 368640, false)
}

func TestFileReadFailures(t *testing.T) {
	b := newBench(t)
	f := func(input, text string) { t.Helper(); b.wantFail(read, input, text) }
	f(`{}`, "missing path")
	f(`{"path":""}`, "missing path")
	f(`{"path":7}`, "missing path")
	f(`{"path":"nope"}`, "cannot open file: nope")
	f(`{"path":"a.txt/b"}`, "cannot open file: a.txt/b")
	f(`{"path":"a.txt/"}`, "cannot open file: a.txt/")
	f(`{"path":"sub"}`, "read error: sub")
	f(`{"path":"sub/"}`, "read error: sub/")
	f(`{"path":"."}`, "read error: .")
	f(`{"path":"sub/.."}`, "read error: sub/..")
	f(`{"path":"<base>"}`, "read error: <base>")
	f(`{"path":"../outside/secret"}`, "read path not allowed (outside MACHINA_ROOT): ../outside/secret")
	if os.Getuid() != 0 {
		b.write("base/closed", "x")
		if err := os.Chmod(b.path("base/closed"), 0); err != nil {
			t.Fatal(err)
		}
		f(`{"path":"closed"}`, "cannot open file: closed")
	}
}

// TestRequestDir: relative names are looked for in the directory of the request first, and nothing outside the root ever.
func TestRequestDir(t *testing.T) {
	b := newBench(t)
	b.write("base/req/a.txt", "of the request")
	b.write("base/req/only.txt", "only there")
	b.write("outside/a.txt", secret)
	f := func(dir, path, resolved, data string) {
		t.Helper()
		b.setEnv(map[string]string{"MACHINA_REQUEST_DIR": dir})
		b.want(read, `{"path":`+quote(path)+`}`, readOutput(path, "<base>/"+resolved, data, false))
	}
	for _, dir := range []string{"req", b.path("base/req")} {
		f(dir, "a.txt", "req/a.txt", "of the request")
		f(dir, "only.txt", "req/only.txt", "only there")
		f(dir, "sub/b.txt", "sub/b.txt", "deep")
		f(dir, "../a.txt", "a.txt", "hello")
		f(dir, b.path("base/a.txt"), "a.txt", "hello")
	}
	f("nowhere", "a.txt", "a.txt", "hello")
	f("../outside", "a.txt", "a.txt", "hello")
	f(b.path("outside"), "a.txt", "a.txt", "hello")
	b.wantFail(read, `{"path":"secret"}`, "cannot open file: secret")
	b.wantFail(read, `{"path":"../outside/secret"}`, "read path not allowed (outside MACHINA_ROOT): ../outside/secret")
}

// TestFileGrowsOrLies: sizes of files under /proc are 0 whatever is in them, so a size must not decide what is read.
func TestFileWithoutSize(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc")
	}
	b := newBench(t)
	b.setEnv(map[string]string{"MACHINA_ROOT": "/proc/sys/kernel"})
	if r := b.run(read, `{"path":"ostype"}`, new(dsstate.State)); r.Status() != tool.OK || !strings.Contains(string(r.Output), `"bytes":6,`) {
		t.Errorf("got %v %q %s", r.Status(), r.ErrorText(), r.Output)
	}
}
