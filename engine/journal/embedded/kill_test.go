package embedded

import (
	"bufio"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/rounds"
)

// The test binary runs itself as the process that dies.
const (
	childDir  = "EMBEDDED_CHILD_DIR"
	childMode = "EMBEDDED_CHILD_MODE"
)

// runChild writes blocks and states each index once it is acknowledged, until it is killed.
func runChild(dir, name string) {
	mode, err := journal.ParseMode(name)
	fatal := func(err error) {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(3)
	}
	if err != nil {
		fatal(err)
	}
	s, err := Open(Config{Dir: dir, Mode: mode, SyncEvery: 50 * time.Millisecond})
	if err != nil {
		fatal(err)
	}
	var line []byte
	for i := s.last.Load() + 1; ; i++ {
		if err := s.WriteBlock(i, blockOf(i, 200+int(i%5000))); err != nil {
			fatal(err)
		}
		line = strconv.AppendUint(line[:0], i, 10)
		if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
			fatal(err)
		}
	}
}

// lifeOf runs the child until it has acknowledged n more blocks, kills it, and returns the last
// index it acknowledged.
func lifeOf(t *testing.T, dir string, mode journal.Mode, n int) (acked journal.Index) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, childMode+"="+mode.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for seen := 0; lines.Scan(); seen++ { // to the end: what it stated before it died counts
		if acked, err = strconv.ParseUint(lines.Text(), 10, 64); err != nil {
			t.Fatal(err)
		}
		if seen == n {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("child ended by itself: %v", err)
	}
	return acked
}

func TestKillNine(t *testing.T) {
	for _, mode := range bothModes {
		t.Run(mode.String(), func(t *testing.T) {
			dir, rng := t.TempDir(), rand.New(rand.NewPCG(1, uint64(mode)))
			for range rounds.Of(2, 2) {
				acked := lifeOf(t, dir, mode, 50+rng.IntN(2000))
				s := mustOpen(t, Config{Dir: dir, Mode: mode})
				got, err := prefixOf(s)
				if err != nil || got < acked {
					t.Fatalf("acknowledged %d, found %d: %v", acked, got, err)
				}
				mustClose(t, s)
			}
		})
	}
}
