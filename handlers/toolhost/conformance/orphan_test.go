package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// slowly asks for a tool that takes its time and leaves a file.
func slowly(c *stream, mark string) {
	say1(c, `{"aid":"AID.EXT.PY.v1","idempotency_key":"k","inputs":{"do":"slow","reply":"`+mark+`"}}`)
}

// begun waits until the tool runs.
func begun(t *testing.T, mark string) {
	t.Helper()
	for range 200 {
		if _, err := os.Stat(mark + ".begun"); err == nil {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatal("the tool does not run")
}

func wantDone(t *testing.T, srv *server, mark string) {
	t.Helper()
	srv.term()
	if code := srv.exit(patience); code != 0 {
		t.Errorf("exit %d", code)
	}
	if _, err := os.Stat(mark + ".done"); err != nil {
		t.Errorf("the tool was ended: %v", err)
	}
}

// TestSIGTERMWaitsForToolsWithoutCallers: a caller who has gone is no reason to end his tool
// (toolhost §2.3).
func TestSIGTERMWaitsForToolsWithoutCallers(t *testing.T) {
	srv, root := withWorkers(t, unix, nil)
	mark := filepath.Join(root, "mark")
	c := srv.dial(t)
	slowly(c, mark)
	begun(t, mark)
	c.close()
	time.Sleep(50 * time.Millisecond)
	wantDone(t, srv, mark)
}

// TestSIGTERMWaitsForStdin: beside sockets as well, and the reply goes out.
func TestSIGTERMWaitsForStdin(t *testing.T) {
	srv, root := withWorkers(t, stdio, nil, "--listen", "unix://"+filepath.Join(newDir(t), "s"), "--stdin")
	mark := filepath.Join(root, "mark")
	slowly(srv.io, mark)
	begun(t, mark)
	wantDone(t, srv, mark)
	if got := srv.io.next(patience); !strings.Contains(got, `"status":"OK"`) {
		t.Errorf("got %s", got)
	}
}
