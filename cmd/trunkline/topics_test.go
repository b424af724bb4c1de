package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/fuzz/kit"
)

// topicRun runs the commands of sheets as a user would: in a shell, in a directory of its own.
type topicRun struct {
	t   *testing.T
	dir string
	env []string
}

// newTopicRun makes the directory and the program in it.
func newTopicRun(t *testing.T) *topicRun {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "trunkline")); err != nil {
		t.Fatal(err)
	}
	r := &topicRun{t: t, dir: t.TempDir()}
	r.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "XDG_CONFIG_HOME="+filepath.Join(r.dir, "config"))
	return r
}

// set sets a variable of the commands.
func (r *topicRun) set(name, value string) { r.env = append(r.env, name+"="+value) }

// start starts a command and returns what it writes, and its end. It ends with the test at the
// latest.
func (r *topicRun) start(script string) (out *kit.Text, wait func() error, stop func()) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), waitFor)
	cmd := exec.CommandContext(ctx, "sh", "-ec", script)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	out = new(kit.Text)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.dir, r.env, out, out
	if err := kit.Start(cmd); err != nil {
		r.t.Fatal(err)
	}
	wait = sync.OnceValue(cmd.Wait)
	r.t.Cleanup(func() {
		cancel()
		_ = wait()
	})
	return out, wait, cancel
}

// await waits until a running command has written what matches, and returns the first group.
func (r *topicRun) await(out *kit.Text, pattern string) string {
	r.t.Helper()
	re := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(waitFor); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if m := re.FindStringSubmatch(out.String()); m != nil {
			return m[len(m)-1]
		}
	}
	r.t.Fatalf("nothing matches %s:\n%s", pattern, out)
	return ""
}

// blocks returns the commands of a sheet: lines that are indented, those next to each other
// together.
func blocks(text string) (list []string) {
	block := ""
	for line := range strings.SplitSeq(text+"\n", "\n") {
		if strings.HasPrefix(line, "  ") {
			block += line + "\n"
		} else if block != "" {
			list, block = append(list, block), ""
		}
	}
	return list
}

// planID is how 'exacta plan' names its plan.
var planID = regexp.MustCompile(`trunkline exacta approve ([0-9a-f]+)`)

// sheet runs all commands of a topic. A command that ends with & runs beside the next ones; it has
// to subscribe first and to end by itself.
func (r *topicRun) sheet(topic string) {
	r.t.Helper()
	_, text, ok := sheet(topic)
	if !ok {
		r.t.Fatalf("there is no sheet of %s", topic)
	}
	var pending []func()
	for _, block := range blocks(text) {
		script, beside := strings.CutSuffix(strings.TrimSpace(block), "&")
		out, wait, _ := r.start(script)
		ended := func() {
			r.t.Helper()
			if err := wait(); err != nil {
				r.t.Errorf("%s: %v\n%s\n%s", topic, err, block, out)
			}
			if out.String() == "" && strings.Contains(block, "trunkline sub") {
				r.t.Errorf("%s: no output of\n%s", topic, block)
			}
		}
		if beside {
			r.await(out, "subscribed to")
			pending = append(pending, ended)
			continue
		}
		ended()
		if m := planID.FindStringSubmatch(out.String()); m != nil {
			r.set("PLAN", m[1])
		}
	}
	for _, end := range pending {
		end()
	}
}

// TestSheets runs every command of every sheet.
func TestSheets(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	r := newTopicRun(t)
	kept, wait, stop := r.start("exec trunkline serve --listen 127.0.0.1:0 --http-listen= --admin-listen=")
	r.await(kept, "serving")
	stop()
	_ = wait()
	ran := []string{}
	on := func(r *topicRun, topics ...string) {
		t.Helper()
		for _, topic := range topics {
			r.sheet(topic)
			ran = append(ran, topic)
		}
	}
	on(r, "store")
	banner, _, _ := r.start("exec trunkline serve --dev --listen 127.0.0.1:0 --http-listen= --admin-listen 127.0.0.1:0 --set threads.listen_addr=127.0.0.1:0 --set threads.lines_addr=")
	r.await(banner, "serving")
	addr, admin := r.await(banner, `kernel ipc listening on (\S+)`), r.await(banner, `admin listening on (\S+)`)
	for name, value := range map[string]string{
		"TRUNKLINE_ADDR": addr, "TRUNKLINE_KERNEL_LISTEN_ADDR": addr, "TRUNKLINE_ADMIN_LISTEN_ADDR": admin, "TRUNKLINE_HTTP_LISTEN_ADDR": "",
		"THREADS_URL": "http://" + r.await(banner, `threads http listening on (\S+)`),
	} {
		r.set(name, value)
	}
	on(r, "calling", "events", "pipelines", "tools")
	r.set("THREADS_TOKEN_FILE", r.write("operator.token", r.await(banner, `threads token for a day: (\S+)`)))
	created, wait, _ := r.start("trunkline mcp-stdio < " + r.write("create.json", createThread))
	if err := wait(); err != nil {
		t.Fatalf("%v\n%s", err, created)
	}
	r.set("THREAD", r.await(created, `"thread_id":"(th_[0-9A-Z]+)"`))
	on(r, "threads")
	socket := filepath.Join(t.TempDir(), "x.sock")
	projects, _, _ := r.start("exec trunkline exacta serve --unix " + socket)
	r.await(projects, "listening on")
	r.set("EXACTA_ADDR", "unix://"+socket)
	r.write("README.md", "# Demo\n\nHello.\n")
	on(r, "projects")
	r.set("TRUNKLINE_STORE_MODE", "memory")
	on(r, "operating")
	if len(ran) != len(topicNames()) {
		t.Errorf("ran %v of %v", ran, topicNames())
	}
}

// write writes a file into the directory.
func (r *topicRun) write(name, text string) (path string) {
	r.t.Helper()
	path = filepath.Join(r.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// createThread is a request of an MCP client.
const createThread = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_thread","arguments":{"workspace_id":"dev","title":"t","type":"workflow","participants":["a"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n"
