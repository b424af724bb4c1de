package procgroup

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// TestDescendantsInOtherSessions end with the process that started them, and those that they start
// behind its end.
func TestDescendantsInOtherSessions(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is not installed")
	}
	const stays = `trap "" TERM; echo $$; while :; do sleep 600 & wait; done`
	p, other := start(t, "setsid sh -c '"+stays+"' & wait")
	d := p.Descendants()
	p.Kill()
	p.Wait()
	if gone, ok := look(other); !ok {
		t.Fatalf("it was ended with the group: %+v", gone)
	}
	d.Kill()
	if !gone(other) {
		t.Error("what it started lives on")
	}
	if d.Kill(); len(d.held) != 0 {
		t.Errorf("%d handles", len(d.held))
	}
	d = p.Descendants() // its number may be that of another process by now
	if len(d.held) != 0 {
		t.Errorf("%d descendants of a process that has ended", len(d.held))
	}
}

// TestDescendantsThatAppear while the others are ended.
func TestDescendantsThatAppear(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is not installed")
	}
	p, other := start(t, "setsid sh -c 'echo $$; while :; do setsid sleep 600 & sleep 0.01; done' & wait")
	d := p.Descendants()
	p.Kill()
	p.Wait()
	before := len(d.held)
	d.find(0)
	var pids []string
	for pid := range d.held {
		pids = append(pids, fmt.Sprint(pid))
	}
	d.Kill()
	for _, pid := range append(pids, other) {
		if !gone(pid) {
			t.Errorf("%s lives on", pid)
		}
	}
	if before == 0 || len(pids) < before {
		t.Errorf("%d, then %d", before, len(pids))
	}
}

func TestParseStat(t *testing.T) {
	f := func(stat string, want proc, ok bool) {
		t.Helper()
		if got, is := parseStat(stat); is != ok || ok && got != want {
			t.Errorf("%q: %+v %v", stat, got, is)
		}
	}
	rest := strings.Repeat(" 0", 17)
	f("7 (sh) S 5"+rest+" 99 0", proc{5, "99"}, true)
	f("7 (a) Z 1 (b) S 5"+rest+" 99 0\n", proc{5, "99"}, true)
	f("7 (sh) Z 5"+rest+" 99", proc{}, false)
	f("7 (sh) S x"+rest+" 99", proc{}, false)
	f("7 (sh) S 5"+rest, proc{}, false)
	f("", proc{}, false)
}

// FuzzParseStat reads anything.
func FuzzParseStat(f *testing.F) {
	f.Add("7 (sh) S 5" + strings.Repeat(" 0", 17) + " 99 0")
	f.Fuzz(func(t *testing.T, stat string) {
		if p, ok := parseStat(stat); ok && p.start == "" {
			t.Errorf("%+v", p)
		}
	})
}
