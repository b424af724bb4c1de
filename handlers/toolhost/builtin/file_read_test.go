package builtin

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"trunkline/handlers/toolhost/sessionstate"
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
		b.wantSlot(s, 0, sessionstate.Artifact{Type: "file_read", Provenance: "fs:read", Content: out, Size: int64(len(data))})
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

// TestRequestDir: relative names are looked for in the directory of the request first, and nothing
// outside the root ever.
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

// TestFileWithoutSize: a file may state that its size is 0 whatever is in it, so a size must not
// decide what is read.
func TestFileWithoutSize(t *testing.T) {
	f, err := os.Open("/proc/sys/kernel/ostype")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if data, more, err := readAt(t.Context(), f, 1, 10); string(data) != "inux\n" || more || err != nil {
		t.Errorf("got %q %v %v", data, more, err)
	}
}

// TestFileReadFitsAReply: whatever the path, the longest read fits a reply, in which the output
// stands twice (toolhost D31), and what it leaves out can be read with an offset.
func TestFileReadFitsAReply(t *testing.T) {
	b := newBench(t)
	f := func(folders int, name string) {
		t.Helper()
		path := strings.Repeat(strings.Repeat(name, 250/len(name))+"/", folders) + "f"
		content := strings.Repeat("0123456789", 40_000)
		b.write("base/"+path, content)
		var got []byte
		for len(got) < len(content) {
			s := new(sessionstate.State)
			r := b.run(read, fmt.Sprintf(`{"path":%s,"max_bytes":%d,"offset":%d}`, quote(path), readMax, len(got)), s)
			slot, ok := s.Get(0)
			if !ok || r.Status() != tool.OK {
				t.Fatalf("%.20q: %v %.100s", path, r.Status(), r.ErrorText())
			}
			const others = 1200 // what a reply has beside them, and a request_id of 128 times \u0000 (toolhost §3.2)
			if n := len(quote(string(r.Output))) + len(quote(slot.Content)) + others; n > maxOutput {
				t.Fatalf("%.20q: a reply would have %d bytes", path, n)
			}
			data, err := base64.StdEncoding.DecodeString(string(pickText(t, r.Output, "content_b64")))
			if err != nil || len(data) == 0 || int64(len(data)) != slot.Size {
				t.Fatalf("%.20q: %d bytes, size %d, %v", path, len(data), slot.Size, err)
			}
			got = append(got, data...)
		}
		if string(got) != content {
			t.Errorf("%.20q: something else is read", path)
		}
	}
	f(14, "\x01")
	f(14, "\"")
	f(1, "\x01")
	f(0, "x")
	if readRoom(strings.Repeat("n", maxName), strings.Repeat("n", maxName)) < readMax {
		t.Error("less is read of files whose paths are only long")
	}
	if n := readRoom(strings.Repeat("\x01", maxName), strings.Repeat("\x01", 100*maxName)); n != 0 {
		t.Errorf("%d bytes beside a path that is too long already", n)
	}
}

func pickText(t *testing.T, object []byte, name string) string {
	t.Helper()
	text, ok := pick(object, name).text(name)
	if !ok {
		t.Fatalf("no %s in %.200s", name, object)
	}
	return text
}

// TestReadsEndWithTheCall: who reads a file of any size looks between two pieces whether anyone
// still waits.
func TestReadsEndWithTheCall(t *testing.T) {
	b := newMemory(t)
	b.write("base/large", strings.Repeat("x", 3*maxLine))
	b.write("base/work/memory/s.jsonl", strings.Repeat("x", 3*maxLine))
	b.write("base/work/vectordb/s/schema.json", `{"dim":1}`)
	b.write("base/work/vectordb/s/embeddings.f32", "1234")
	b.write("base/work/vectordb/s/meta.jsonl", strings.Repeat("x", 3*maxLine))
	f := func(name, input string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b.ctx = ctx
		if r := b.call(name, input); r.ErrorText() != context.Cause(ctx).Error() {
			t.Errorf("%s: %v %q", name, r.Status(), r.ErrorText())
		}
	}
	f("FILE.READ", `{"path":"large"}`)
	f("HASH.DIGEST", `{"path":"large"}`)
	f("ERROR_SCAN", `{"input_path":"large","pattern":"y"}`)
	f("MEMORY.SEARCH", `{"stream":"s"}`)
	f("MEMORY.QUERY", `{"stream":"s","query":"x"}`)
	f("VECDB.QUERY", `{"stream":"s","query":"x"}`)
	f("VECDB.UPSERT", `{"stream":"s","text":"x"}`)

	file, err := os.Open(b.path("base/large"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ctx, cancel := context.WithCancel(t.Context())
	lines, err := tailOf(ctx, file, 3*maxLine)
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := lines.next(); ok || err != context.Canceled {
		t.Errorf("a line is looked for all the same: %v %v", ok, err)
	}
}
