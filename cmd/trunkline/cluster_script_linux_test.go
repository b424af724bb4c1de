package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/handlers/ipc/ipcclient"
)

// The client script of the tour: where it connects, and what it does to one process each time.
const (
	scriptPage    = "../../docs/tour.md"
	scriptMark    = markFile + "client.py"
	scriptAddr    = `("127.0.0.1", 50051)`
	scriptPID     = "py1"
	scriptCalls   = 3
	scriptPause   = 50 * time.Millisecond
	scriptRefused = "ConnectionRefusedError"
)

// scriptRuns is a script that is run at a node again and again.
type scriptRuns struct {
	node *clusterNode
	path string
	want string // the last line of its output

	mu                    sync.Mutex
	whole, acked, unknown int
}

// once runs the script. Where its connection ends it fails, and may have had its effect.
func (s *scriptRuns) once(ctx context.Context, python string) {
	out, err := exec.CommandContext(ctx, python, s.path).CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(lines) > 1 && strings.HasPrefix(lines[1], "RESPONSE {'id': '2', 'ok': True"):
		s.acked++
	case !strings.Contains(string(out), scriptRefused):
		s.unknown++
	}
	if err == nil && len(lines) == 4 && lines[3] == s.want {
		s.whole++
	}
}

// more waits until the script has further whole runs.
func (s *scriptRuns) more() {
	s.node.rig.t.Helper()
	done := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.whole
	}
	want := done() + 2 // one may have begun before
	s.node.rig.until("the script has its answers at node "+s.node.id, func() bool { return done() >= want })
}

// scriptOfTour returns the script and the last line that the page shows of its output.
func scriptOfTour(t *testing.T) (script, last string) {
	t.Helper()
	_, blocks := readPage(t, scriptPage)
	for i, b := range blocks {
		if b.mark == scriptMark && i+1 < len(blocks) {
			shown := strings.TrimSpace(blocks[i+1].text)
			return b.text, shown[strings.LastIndex(shown, "\n")+1:]
		}
	}
	t.Fatalf("%s has no %q", scriptPage, scriptMark)
	return "", ""
}

// TestClusterScript: the client script of the tour, with no change but the address, is run at every
// node while the owner is killed. All that it has to do is to connect again.
func TestClusterScript(t *testing.T) {
	besideOthers(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here: it is in the package of that name")
	}
	script, last := scriptOfTour(t)
	if strings.Count(script, scriptAddr) != 1 {
		t.Fatalf("the script does not connect to %s once", scriptAddr)
	}
	r := newClusterRig(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	var all []*scriptRuns
	for _, n := range r.nodes {
		host, port, _ := strings.Cut(n.kernel, ":")
		s := &scriptRuns{node: n, path: filepath.Join(t.TempDir(), "client.py"), want: last}
		if err := os.WriteFile(s.path, []byte(strings.Replace(script, scriptAddr, `("`+host+`", `+port+`)`, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
		running.Go(func() {
			for ctx.Err() == nil {
				s.once(context.WithoutCancel(ctx), python)
				time.Sleep(scriptPause)
			}
		})
	}
	at := func(nodes []*clusterNode) {
		t.Helper()
		for _, s := range all {
			for _, n := range nodes {
				if s.node == n {
					s.more()
				}
			}
		}
	}
	at(r.nodes)
	owner := r.owner(r.nodes...)
	owner.kill()
	at(r.but(owner))
	owner.start()
	r.ready(r.nodes...)
	at(r.nodes)
	stop()
	running.Wait()
	acked, unknown := 0, 0
	for _, s := range all {
		acked, unknown = acked+s.acked, unknown+s.unknown
	}
	c := &clusterClient{node: r.nodes[0]}
	defer c.close()
	c.surely("the counter", func(ctx context.Context, conn *ipcclient.Conn) error {
		p, err := conn.GetProcess(ctx, scriptPID)
		if n := int(p.Usage.LLMCalls); err == nil && (n < scriptCalls*acked || n > scriptCalls*(acked+unknown)) {
			t.Errorf("the counter is %d after %d acknowledged and %d unknown runs", n, acked, unknown)
		}
		return err
	})
	t.Logf("%d runs acknowledged, %d unknown", acked, unknown)
}
