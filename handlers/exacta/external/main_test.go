package external

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/planner"
	"trunkline/engine/projects/secret"
	"trunkline/handlers/exacta/workspace"
)

// TestMain makes this test binary a planner when its first argument is "planner".
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "planner" {
		play(os.Args[2], os.Args[3:])
		return
	}
	goleak.VerifyTestMain(m)
}

const unknownIntent = `{"type":"UnknownIntent","confidence":0,"target":{"files":[],"symbols":[],"description":"x"},"constraints":[]}`

// play is a planner. Each line that it gets is appended to the file log, its start too.
func play(log string, acts []string) {
	note := func(text string) {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(f, text)
		f.Close()
	}
	dir, _ := os.Getwd()
	entries, _ := os.ReadDir(dir)
	note(fmt.Sprintf("start %s %d %s", dir, len(entries), strings.Join(os.Environ(), " ")))
	in := bufio.NewReaderSize(os.Stdin, 8<<20)
	for i := 0; ; i++ {
		act := acts[min(i, len(acts)-1)]
		if act == "deaf" {
			time.Sleep(time.Hour) // without a timer the runtime would end the program
		}
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		note(strings.TrimSuffix(line, "\n"))
		var q struct{ ID string }
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			panic(err)
		}
		if !perform(act, q.ID) {
			return
		}
	}
}

// perform does one act. It reports whether the planner goes on.
func perform(act, id string) bool {
	answer := func(result string) { fmt.Printf(`{"id":"%s","ok":true,"result":%s}`+"\n", id, result) }
	switch verb, rest, _ := strings.Cut(act, " "); verb {
	case "answer":
		answer(rest)
	case "say": // any line
		fmt.Println(strings.ReplaceAll(rest, "{ID}", id))
	case "blank":
		fmt.Print("\n \t\r\n")
		answer(rest)
	case "last":
		answer(rest)
		return false
	case "refuse":
		fmt.Printf(`{"id":"%s","ok":false,"error":{"code":"%s","message":"because"}}`+"\n", id, rest)
	case "part":
		fmt.Printf(`{"id":"%s","ok":`, id)
		return false
	case "exit":
		fmt.Fprintln(os.Stderr, "key sk-aaaaaaaaaaaaaaaaaaaaaaaa is bad")
		os.Exit(3)
	case "huge":
		for range 5 {
			fmt.Print(strings.Repeat("x", 1<<20))
		}
	case "chatty": // on stderr, more than a pipe holds
		fmt.Fprint(os.Stderr, strings.Repeat("e", 1<<20))
		answer(rest)
	case "silent":
	case "size": // a line of that many bytes
		var n int
		fmt.Sscan(rest, &n)
		head := fmt.Sprintf(`{"id":"%s","ok":true,"pad":"`, id)
		tail := `","result":` + unknownIntent + `}`
		fmt.Println(head + strings.Repeat("x", n-len(head)-len(tail)) + tail)
	default:
		panic(act)
	}
	return true
}

// project is one on the disk, with the files of its index.
type project struct {
	t    testing.TB
	root string
	*Project
}

func (p *project) Files() []string {
	index, f := p.Disk.Index()
	if f != nil {
		p.t.Fatal(f)
	}
	var out []string
	for _, e := range index {
		out = append(out, e.Path)
	}
	return out
}
func (p *project) Scan(path string) ([]byte, error) { return p.Read(path) }
func (p *project) Exists(path string) bool          { _, err := p.Read(path); return err == nil }
func (p *project) Markers() []string                { return []string{} }
func (p *project) Read(path string) ([]byte, error) {
	b, _, f := p.Disk.Read(path)
	if f != nil {
		return nil, f
	}
	return b, nil
}

// newProject makes a project of files, "path=content" each.
func newProject(t testing.TB, config string, files ...string) *project {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if config != "" {
		files = append(files, ".exacta/config.json="+config)
	}
	for _, f := range files {
		name, content, _ := strings.Cut(f, "=")
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ws, f := workspace.Open(root, workspace.Options{Secret: secret.Find})
	if f != nil {
		t.Fatal(f)
	}
	t.Cleanup(ws.Close)
	p := &project{t: t, root: root}
	p.Project = &Project{Disk: ws, Config: ws.Config(), Tree: p, Planner: &planner.Config{Configuration: "Debug"}, Size: func(path string) int64 {
		b, _ := p.Read(path)
		return int64(len(b))
	}}
	ws.SetDeny(func(path string, _ bool) bool { return strings.HasSuffix(path, ".env") })
	return p
}

// played is a planner of this test binary.
type played struct {
	*Planner
	t   testing.TB
	log string
}

// newPlayed returns a planner that performs the acts, the last one for ever.
func newPlayed(t testing.TB, c Config, acts ...string) *played {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &played{t: t, log: filepath.Join(t.TempDir(), "log")}
	c.Kind, c.Command = Subprocess, append([]string{self, "planner", p.log}, acts...)
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	p.Planner = New(c)
	t.Cleanup(p.Close)
	return p
}

// lines returns what the planner noted: its starts and what it was asked.
func (p *played) lines() []string {
	b, err := os.ReadFile(p.log)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// starts returns how often the planner was started.
func (p *played) starts() (n int) {
	for _, line := range p.lines() {
		if strings.HasPrefix(line, "start ") {
			n++
		}
	}
	return n
}

// code returns the code of a fault and the detail.
func code(f *errcode.Fault) string {
	if f == nil {
		return "ok"
	}
	return f.Code + " " + f.Detail
}

func (p *played) extract(pr *project, input string) string {
	p.t.Helper()
	in, f := p.Extract(context.Background(), pr.Project, input)
	if f == nil && in.RawInput != input {
		p.t.Errorf("raw input %q", in.RawInput)
	}
	return code(f)
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// awaitFor waits for what another process does.
func awaitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not in time", what)
		}
	}
}
