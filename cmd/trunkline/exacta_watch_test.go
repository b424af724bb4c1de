package main

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"
)

// TestWatchConnectsAgain: connections are broken between events and while they come, and each line
// comes once. What cannot go on ends it.
func TestWatchConnectsAgain(t *testing.T) {
	s := startProjects(t, demo())
	out, lines := io.Pipe()
	var talk strings.Builder
	ended := make(chan int, 1)
	go func() {
		defer lines.Close()
		ended <- run([]string{"exacta", "watch", "--after", "0", "--addr", s.addr, "--project", s.dir, "--timeout", waitFor.String()}, strings.NewReader(""), lines, &talk)
	}()
	shown := bufio.NewScanner(out)
	n := 0
	upTo := func(last int) {
		t.Helper()
		for n < last && shown.Scan() {
			if n++; strings.Fields(shown.Text())[0] != strconv.Itoa(n) {
				t.Fatalf("line %d is %q", n, shown.Text())
			}
		}
		if n < last {
			t.Fatalf("%d of %d lines, stderr %s", n, last, talk.String())
		}
	}
	upTo(1)
	for range 4 {
		s.planned(`Append "x" to README.md`)
		s.breakAll()
		s.run("reject")
		var state struct {
			StreamSeq int `json:"stream_seq"`
		}
		if err := json.Unmarshal([]byte(s.run("status", "--json").stdout), &state); err != nil {
			t.Fatal(err)
		}
		upTo(state.StreamSeq)
	}
	wantRun(t, s.run("close"), 0, "", "")
	s.breakAll()
	for shown.Scan() { // that it was opened for the close
		n++
	}
	if code := <-ended; code != 60 || strings.Count(talk.String(), "; connecting again\n") < 2 || !strings.Contains(talk.String(), "trunkline: ST-003: ") {
		t.Errorf("code %d: %s", code, talk.String())
	}
}
