package conformance

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/fuzz/rounds"
)

// waiting is in the names of files that wait for real time.
const waiting = "-wait"

// TestTranscripts holds every transcript over every transport it is written for; in other than the
// long form over one of them, which differs from transcript to transcript.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(cmp.Or(os.Getenv("CONFORMANCE_TESTDATA"), "testdata") + "/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for i, path := range paths {
		transports := transportsOf(t, path)
		if !rounds.Long() {
			transports = transports[i%len(transports):][:1]
		}
		for _, over := range transports {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".txt")+"/"+over, func(t *testing.T) {
				if testing.Short() && strings.Contains(path, waiting) {
					t.Skip("waits for real time")
				}
				t.Parallel()
				newScript(t, over, path).runFile(path)
			})
		}
	}
}

// transportsOf reads the "on" line of a transcript.
func transportsOf(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "on "); ok {
			return strings.Fields(rest)
		}
	}
	return []string{stdio, unix, tcp}
}
