package exacta

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"trunkline/engine/projects/planner"
	"trunkline/engine/projects/relpath"
	"trunkline/handlers/exacta/workspace"
)

// TestTreeKeepsLittle: of many files it keeps some, and finds the same once more. Larger ones are
// not searched, and none is for a work that was aborted.
func TestTreeKeepsLittle(t *testing.T) {
	dir := newRoot(t)
	text := append(bytes.Repeat([]byte{' '}, planner.MaxScan-len("\ntype Foo")), "\ntype Foo"...)
	n := maxKept/planner.MaxScan + 2
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%02d", i)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "large"), append(text, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	ws, f := workspace.Open(dir, workspace.Options{Key: key()})
	if f != nil {
		t.Fatal(f)
	}
	defer ws.Close()
	stopped := false
	tr, f := newTree(ws, relpath.NewRules(nil, nil, false), func() bool { return stopped })
	if f != nil {
		t.Fatal(f)
	}
	for range 2 {
		if found := tr.Defining("Foo"); len(found) != n {
			t.Errorf("%d files, want %d: %v", len(found), n, found)
		}
		kept := 0
		for _, b := range tr.content {
			kept += len(b)
		}
		if kept > maxKept || kept <= maxKept-planner.MaxScan {
			t.Errorf("%d bytes are kept", kept)
		}
	}
	stopped = true
	if found := tr.Defining("Foo"); len(found) != 0 {
		t.Errorf("found for a work that was aborted: %v", found)
	}
}

// TestWorksOfADiskThatDoesNotAnswerAreBounded: those that were cancelled and wait for the disk are
// counted, at the limit and above.
func TestWorksOfADiskThatDoesNotAnswerAreBounded(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	answer := make(chan struct{})
	met := make(chan struct{}, maxJobs)
	var once sync.Once
	release := func() { once.Do(func() { close(answer) }) }
	t.Cleanup(release)
	s.options.Lazy = true
	s.options.Before = func(op, name string) error {
		if op+" "+name == "open a.txt" {
			met <- struct{}{}
			<-answer
		}
		return nil
	}
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 101:ok")
	extract := func(n int) string { return ask(n, "ExtractIntent", `"user_input":"fix fooBar crash"`) }
	n := 2
	for range maxJobs {
		p.send(extract(n))
		<-met
		p.send(ask(n+1, "Cancel", fmt.Sprintf(`"execution_id":"00000000-0000-4000-8000-0000000001%02x"`, n)))
		p.until(n + 1)
		n += 2
	}
	p.send(extract(n))
	if got := p.until(n); !strings.Contains(got, "RES-004") || len(met) > 0 {
		t.Errorf("one more: %s", got)
	}
	release()
	p.send(ask(n+1, "CloseProject", ""))
	p.until(n + 1)
}
