package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSlowToolsDoNotDelaySmallOnes: while more calls than there are places read a file without an
// end, small ones are answered.
func TestSlowToolsDoNotDelaySmallOnes(t *testing.T) {
	root := newDir(t)
	for _, name := range []string{"endless", "small"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte("h\nE\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(root, "endless"), 1<<42); err != nil {
		t.Skipf("no file of that size here: %v", err)
	}
	srv := serve(t, unix, root, []string{"MACHINA_TOOLHOST_TIMEOUT_MS=600000", "GOMAXPROCS=2"}, "--serve", "builtin")
	const slow = 12 // GOMAXPROCS=2 has four places
	watch := srv.dial(t)
	for i := range slow {
		line := `{"aid":"AID.HASH.DIGEST.v1","inputs":{"path":"endless"}}`
		if i%2 == 1 {
			line = `{"aid":"AID.ERROR_SCAN.v1","inputs":{"input_path":"endless","pattern":"E"}}`
		}
		say1(srv.dial(t), line)
	}
	running := func() bool {
		say1(watch, `{"aid":"_stats"}`)
		return strings.Contains(watch.next(patience), fmt.Sprintf(`"in_flight":%d,`, slow))
	}
	for deadline := time.Now().Add(patience); !running(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the slow calls do not run")
		}
	}
	small := srv.dial(t)
	for _, line := range []string{
		`{"aid":"AID.FILE.READ.v1","inputs":{"path":"small"}}`,
		`{"aid":"AID.FILE.WRITE.v1","inputs":{"path":"new","content":"x"}}`,
		`{"aid":"AID.MEMORY.APPEND.v1","inputs":{"text":"bees sleep"}}`,
		`{"aid":"AID.MEMORY.QUERY.v1","inputs":{"query":"bees"}}`,
		`{"aid":"AID.HASH.DIGEST.v1","inputs":{"path":"small"}}`,
		`{"aid":"AID.ERROR_SCAN.v1","inputs":{"input_path":"small","pattern":"E"}}`,
	} {
		say1(small, line)
		if got := small.next(patience); !strings.HasPrefix(got, `{"ok":true,`) {
			t.Fatalf("%s: %.200s", line, got)
		}
	}
	if !running() {
		t.Error("the slow calls have ended")
	}
}
