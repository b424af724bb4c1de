package conformance

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// transcriptPage is what TestTranscript runs.
const transcriptPage = "../../../docs/exacta-transcript.md"

var update = flag.Bool("update", false, "write the transcript anew")

// TestTranscript has the conversation of the page over a unix socket: all that comes is what the
// page shows. With -update, lines that differ are written into it. The lines of its blocks:
//
//	$ command   runs in the directory of the project
//	> message   is sent
//	< line      comes; … stands for any text
//	# …         the connection is lost, and another one made
func TestTranscript(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	page, err := os.ReadFile(transcriptPage)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, unix)
	s.write("README.md", "# Demo\n\nHello.\n")
	c := s.connect()
	c.logs = true
	lines, inside := strings.Split(string(page), "\n"), false
	for i, line := range lines {
		mark, rest, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```transcript"
		case !inside:
		case mark == "$":
			cmd := exec.Command("sh", "-c", rest)
			cmd.Dir = c.dir()
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Fatalf("%s: %v %s", rest, err, out)
			}
		case mark == ">":
			c.sends(strings.ReplaceAll(rest, "{DIR}", c.dir()))
		case mark == "<":
			got := strings.ReplaceAll(c.next().line, c.dir(), "{DIR}")
			if rest != "" && matches(rest, got) {
				continue
			}
			if lines[i] = "< " + got; !*update {
				t.Fatalf("line %d of the page is %s\ngot %s", i+1, line, got)
			}
		default:
			c.conn.shut()
			c = s.connect()
			c.logs, c.joined = true, true
		}
	}
	s.stop()
	c.closes()
	if *update {
		if err := os.WriteFile(transcriptPage, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
