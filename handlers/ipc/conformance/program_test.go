package conformance

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"trunkline/codec/wire"
)

// programPackage has the test that serves as programServer, and the variables of its environment
// with the settings and the clock.
const (
	programPackage  = "trunkline/cmd/trunkline/internal/app"
	programTest     = "^TestTranscriptServer$"
	programSettings = "TRUNKLINE_TRANSCRIPT_SERVER="
	programClock    = "TRUNKLINE_TRANSCRIPT_CLOCK="
)

// buildProgram builds the tests of programPackage: what makes the parts of the program cannot be
// imported here.
func buildProgram(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.test")
	build := exec.Command("go", "test", "-c", "-ldflags=-w", "-o", path, programPackage)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build %s: %v\n%s", programPackage, err, out)
	}
	return path
}

// programServer is a process with a cluster of three, which takes orders.
type programServer struct {
	s        *script
	in       io.WriteCloser
	out      *bufio.Scanner
	addrs    []string // of the nodes
	next     int
	oneNode  bool
	mu       sync.Mutex
	finished func()
}

// startProgram starts the server that a command describes.
func (s *script) startProgram(d *datadriven.TestData) {
	s.t.Helper()
	s.limit, s.clock = wire.DefaultMaxFrame, &clock{}
	p, clockKind := &programServer{s: s, oneNode: strings.Contains(s.file.Name(), "shutdown")}, "" // a node ends by itself
	var set []string
	if d.Cmd == "server" {
		for _, a := range d.CmdArgs {
			switch a.Key {
			case "clock":
				clockKind = a.Vals[0]
				continue
			case "max_frame_bytes":
				if _, err := fmt.Sscan(a.Vals[0], &s.limit); err != nil {
					d.Fatalf(s.t, "%s: %v", a.Key, err)
				}
			case "max_connections":
				p.oneNode = true // which counts its clients
			}
			if a.Key != "dequeue_lease_secs" || a.Vals[0] != "-1" {
				set = append(set, a.Key+"="+a.Vals[0])
			} else {
				set = append(set, "dequeue_lease_secs=0") // which is none
			}
		}
	}
	cmd := exec.Command(s.program, "-test.run="+programTest, "-test.v=false", "-test.timeout=30m")
	cmd.Env = append(os.Environ(), programSettings+strings.Join(set, " "), programClock+clockKind)
	cmd.Stderr = s.file.Output()
	out, err := cmd.StdoutPipe()
	if err == nil {
		p.in, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	p.finished = sync.OnceFunc(func() {
		_ = p.in.Close() // it ends then
		for p.out.Scan() {
			if line := p.out.Text(); line != "PASS" {
				s.file.Log(line)
			}
		}
		if err := cmd.Wait(); err != nil {
			s.file.Errorf("the server: %v", err)
		}
	})
	s.srv, p.out = p, bufio.NewScanner(out)
	for range 3 {
		addr, ok := strings.CutPrefix(p.line(), "listening ")
		if !ok {
			s.t.Fatalf("the server says %q", addr)
		}
		p.addrs = append(p.addrs, addr)
	}
}

func (p *programServer) line() string {
	p.out.Scan()
	return p.out.Text()
}

// order has the server do something, and returns when that is done.
func (p *programServer) order(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := io.WriteString(p.in, text+"\n"); err != nil {
		p.s.file.Errorf("cannot order %q: %v", text, err)
	} else if done := p.line(); done != "done" {
		p.s.file.Errorf("order %q: %q", text, done)
	}
}

// addr returns the nodes in turn: where a client connects makes no difference.
func (p *programServer) addr() string {
	if !p.oneNode {
		p.next++
	}
	return p.addrs[p.next%len(p.addrs)]
}

func (p *programServer) advanced(d time.Duration) { p.order(fmt.Sprint("advance ", int64(d))) }
func (p *programServer) Sweep()                   { p.order("sweep") }
func (p *programServer) Drain()                   { p.order("drain") }
