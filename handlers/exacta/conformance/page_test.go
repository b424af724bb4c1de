package conformance

import (
	"flag"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// transcriptPage is what TestTranscript runs.
const transcriptPage = "../../../docs/exacta-transcript.md"

var update = flag.Bool("update", false, "rewrite the transcript")

// TestTranscript holds the conversation of the page: its blocks have lines of TestConversations,
// and nothing comes that they do not have. With -update, what comes is written into the page.
func TestTranscript(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	page, err := os.ReadFile(transcriptPage)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, via: unix, home: realTemp(t), flags: fixed}
	c := &conversation{t: t, server: s}
	c.files("write", `README.md "# Demo\n\nHello.\n"`)
	c.do("start")
	lines, inside := strings.Split(string(page), "\n"), false
	for i, line := range lines {
		c.at = "line " + strconv.Itoa(i+1) + " of the page: " + line
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```transcript"
		case inside && *update && strings.HasPrefix(line, "<"):
			c.client.logs = true
			if got := strings.ReplaceAll(c.client.next().line, s.dir(), "{DIR}"); !matches(line, "< "+got) {
				lines[i] = "< " + got
			}
		case inside:
			c.do(strings.ReplaceAll(line, "{DIR}", s.dir()))
		}
	}
	c.end()
	if *update {
		c.check(os.WriteFile(transcriptPage, []byte(strings.Join(lines, "\n")), 0o644))
	}
}
