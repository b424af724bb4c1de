package builtin

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/handlers/toolhost/tool"
)

// perWriter is how many lines each goroutine of TestWritersTogether appends.
const perWriter = 150

// helperRoot is the variable that makes a test process a writer in that root.
const helperRoot = "TOOLS_TEST_WRITER_ROOT"

// TestWriterProcess is no test but a second process for others: it appends until it is killed, and
// states "writing" when it has begun.
func TestWriterProcess(t *testing.T) {
	root := os.Getenv(helperRoot)
	if root == "" {
		t.Skip("runs as a process of other tests only")
	}
	env, err := EnvFrom(func(name string) string {
		return map[string]string{"MACHINA_ROOT": root, "MACHINA_MEMORY_ROTATE_BYTES": "20000", "MACHINA_VECDB_DIM": "8"}[name]
	}, root)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		for _, tl := range []tool.Tool{&bound{env, memoryAppend}, &bound{env, vecdbUpsert}} {
			input := fmt.Sprintf(`{"stream":"s","text":"p%d %s"}`, i, strings.Repeat("x", i%300))
			if r := tl.Run(t.Context(), &tool.Call{Input: []byte(input), Now: time.Now}); r.Status() != tool.OK {
				fmt.Println("cannot write:", r.ErrorText())
				os.Exit(1)
			}
		}
		if i == 20 {
			fmt.Println("writing")
		}
	}
}

// startWriter starts such a process; stop kills it where it stands.
func (m *memory) startWriter() (stop func()) {
	m.t.Helper()
	p := exec.Command(os.Args[0], "-test.run=^TestWriterProcess$")
	p.Env = append(os.Environ(), helperRoot+"="+m.path("base"))
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "writing" {
			break
		}
		if strings.HasPrefix(lines.Text(), "cannot") {
			m.t.Fatal(lines.Text())
		}
	}
	return func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	}
}

// streamLines returns the lines of all files of the stream s, and how many of them are not JSON.
func (m *memory) streamLines() (texts map[string]int, broken int) {
	m.t.Helper()
	texts = map[string]int{}
	entries, err := os.ReadDir(m.path("base/work/memory"))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, e := range entries {
		for line := range strings.Lines(m.content("base/work/memory/" + e.Name())) {
			var entry struct{ Text string }
			if json.Unmarshal([]byte(line), &entry) != nil || !strings.HasSuffix(line, "\n") {
				broken++
			}
			texts[entry.Text]++
		}
	}
	return texts, broken
}

// TestWritersTogether: goroutines and a second process append to one stream that is rotated all the
// time, until the process is killed. No line is lost and none is mixed with another.
func TestWritersTogether(t *testing.T) {
	m := newMemory(t, "MACHINA_MEMORY_ROTATE_BYTES", "20000", "MACHINA_VECDB_DIM", "8")
	stop := m.startWriter()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range perWriter {
				input := fmt.Sprintf(`{"stream":"s","text":"g%d %d"}`, g, i)
				if r := m.call("MEMORY.APPEND", input); r.Status() != tool.OK {
					t.Errorf("append: %s", r.ErrorText())
				}
				if r := m.call("VECDB.UPSERT", input); r.Status() != tool.OK {
					t.Errorf("upsert: %s", r.ErrorText())
				}
			}
		})
	}
	wg.Wait()
	stop()
	m.ok("VECDB.UPSERT", `{"stream":"s","text":"last"}`, `{"ok":true,"stream":"s"}`)
	texts, broken := m.streamLines()
	if broken > 1 {
		t.Errorf("%d lines are broken, one kill can break one", broken)
	}
	meta := m.content("base/work/vectordb/s/meta.jsonl")
	for g := range 4 {
		for i := range perWriter {
			text := fmt.Sprintf("g%d %d", g, i)
			if texts[text] != 1 {
				t.Errorf("%q is there %d times", text, texts[text])
			}
			if n := strings.Count(meta, `"text":"`+text+`"}`); n != 1 {
				t.Errorf("%q is there %d times in the store", text, n)
			}
		}
	}
	m.wantConsistentStore("base/work/vectordb/s/")
}

// wantConsistentStore wants line i of the store to be about row i, and the row to be that of its
// text.
func (m *memory) wantConsistentStore(dir string) {
	m.t.Helper()
	rows, n := m.content(dir+embeddingsFile), 0
	for line := range strings.Lines(m.content(dir + metaFile)) {
		var entry struct {
			I    int
			Text string
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.I != n || len(rows) < 32*(n+1) {
			m.t.Fatalf("line %d: %v %q", n, err, line)
		}
		if rows[32*n:32*n+32] != rowsOf(embedding(entry.Text, 8)) {
			m.t.Errorf("row %d is not that of %q", n, entry.Text)
		}
		n++
	}
	if len(rows) != 32*n {
		m.t.Errorf("%d lines and %d bytes of rows", n, len(rows))
	}
}

// TestKilledWriters: after each kill readers and writers go on.
func TestKilledWriters(t *testing.T) {
	m := newMemory(t, "MACHINA_MEMORY_ROTATE_BYTES", "20000", "MACHINA_VECDB_DIM", "8")
	for i := range 3 {
		m.startWriter()()
		text := fmt.Sprintf("after kill %d", i)
		input := `{"stream":"s","text":"` + text + `"}`
		if r := m.call("MEMORY.APPEND", input); r.Status() != tool.OK {
			t.Fatal(r.ErrorText())
		}
		m.ok("VECDB.UPSERT", input, `{"ok":true,"stream":"s"}`)
		if got := m.ask(`"stream":"s","query":"` + text + `","top_k":1`); got[0].Text != text {
			t.Errorf("got %+v", got)
		}
		m.wantConsistentStore("base/work/vectordb/s/")
	}
	if _, broken := m.streamLines(); broken > 3 {
		t.Errorf("%d lines are broken by 3 kills", broken)
	}
}

// TestPythonWriter: the other program that appends takes the same lock.
func TestPythonWriter(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	m := newMemory(t)
	m.write("base/work/memory/s.jsonl", "")
	const program = `
import fcntl, json, sys
for i in range(200):
    with open(sys.argv[1], "a") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        line = json.dumps({"ts_ms": i, "stream": "s", "text": "py %d \u00f6" % i}) + "\n"
        for part in line[:9], line[9:]:
            f.write(part)
            f.flush()
`
	p := exec.Command(python, "-c", program, m.path("base/work/memory/s.jsonl"))
	p.Stderr = os.Stderr
	if err = p.Start(); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		m.ok("MEMORY.APPEND", fmt.Sprintf(`{"stream":"s","text":"go %d"}`, i), `{"ok":true,"stream":"s","file":"<base>/work/memory/s.jsonl","ts_ms":1700000000000}`)
	}
	if err = p.Wait(); err != nil {
		t.Skipf("cannot run python3: %v", err)
	}
	texts, broken := m.streamLines()
	if broken > 0 || len(texts) != 300 {
		t.Errorf("%d lines, %d of them broken", len(texts), broken)
	}
	if got := m.ask(`"stream":"s","query":"py 199","top_k":1`); got[0].Text != "py 199 ö" {
		t.Errorf("got %+v", got)
	}
}

// TestLockWaits: no one writes while another has the lock, nor after the deadline has passed.
func TestLockWaits(t *testing.T) {
	m := newMemory(t)
	const done = `{"ok":true,"stream":"s","file":"<base>/work/memory/s.jsonl","ts_ms":1700000000000}`
	m.ok("MEMORY.APPEND", `{"stream":"s","text":"1"}`, done)
	before := m.content("base/work/memory/s.jsonl")
	f, err := os.OpenFile(m.path("base/work/memory/s.jsonl"), os.O_RDWR, 0)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	m.ctx = ctx
	m.fail("MEMORY.APPEND", `{"stream":"s","text":"2"}`, "context deadline exceeded")
	m.ctx = t.Context()
	m.holds("work/memory/s.jsonl", before)

	finished := make(chan struct{})
	go func() {
		defer close(finished)
		m.ok("MEMORY.APPEND", `{"stream":"s","text":"3"}`, done)
	}()
	for m.handles("base/work/memory/s.jsonl") < 2 {
		runtime.Gosched()
	}
	// The file gets another name while the other writer waits: that one must not write to it any
	// more.
	if err = os.Rename(f.Name(), f.Name()+".1.rotated"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	<-finished
	m.holds("work/memory/s.jsonl.1.rotated", before)
	m.holds("work/memory/s.jsonl", `{"ts_ms":1700000000000,"stream":"s","text":"3"}`+"\n")
}

// handles returns how often this process has the file name open.
func (m *memory) handles(name string) (n int) {
	const fds = "/proc/self/fd"
	entries, err := os.ReadDir(fds)
	if err != nil {
		m.t.Skip("cannot tell who waits without", fds)
	}
	for _, e := range entries {
		if target, _ := os.Readlink(fds + "/" + e.Name()); target == m.path(name) {
			n++
		}
	}
	return n
}

// TestQueryWaitsForNewStore: a store whose first writer is at work is not one without a schema.
func TestQueryWaitsForNewStore(t *testing.T) {
	m := newMemory(t)
	m.write("base/"+storeDir+embeddingsFile, "")
	f, err := os.OpenFile(m.path("base/"+storeDir+embeddingsFile), os.O_RDWR, 0)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		m.ok("VECDB.QUERY", `{"query":"x"}`, `{"ok":true,"provider":"hash","hits":[]}`)
	}()
	for m.handles("base/"+storeDir+embeddingsFile) < 2 {
		runtime.Gosched()
	}
	m.write("base/schema", `{"dim":4}`)
	if err = os.Rename(m.path("base/schema"), m.path("base/"+storeDir+schemaFile)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	<-finished
}

// TestAppendWholeUndoes: what could not be written whole is not there.
func TestAppendWholeUndoes(t *testing.T) {
	m := newMemory(t)
	m.write("base/full", "1234")
	f, err := os.OpenFile(m.path("base/full"), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	read, err := os.Open(m.path("base/full"))
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if err = appendWhole(read, 4, []byte("x"), false); err == nil {
		t.Error("wrote to a file that is open for reading")
	}
	if err = appendLine(f, 4, []byte("x\n"), true); err != nil {
		t.Error(err)
	}
	f.Close()
	m.holds("full", "1234\nx\n")
	if err = appendLine(f, 4, []byte("x\n"), true); err == nil {
		t.Error("wrote to a closed file")
	}
}
