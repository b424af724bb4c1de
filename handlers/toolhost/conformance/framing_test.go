package conformance

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// maxLine is the length of a request line without its end (toolhost §2.2).
const maxLine = 10 << 20

const nop = `{"ok":true,"status":"OK","output_json":"{}","error":"","ds_state":{"delta":true,"slots":{},"removed_slots":[]}}`

const patience = 15 * time.Second

// overAll runs a test once per transport.
func overAll(t *testing.T, f func(t *testing.T, over string)) {
	for _, over := range []string{stdio, unix, tcp} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			f(t, over)
		})
	}
}

// want reads one reply and compares.
func want(t testing.TB, c *stream, line string) {
	t.Helper()
	got := c.next(patience)
	if got != line {
		t.Fatalf("want %s\n got %s", clip(line), clip(got))
	}
	if got != ended && got != silent {
		checkReply(t, "reply", got)
	}
}

func say1(c *stream, line string) { c.send([]byte(line + "\n")) }

// conversation is sent in pieces: CR LF, several bytes to a character, an error, a state change.
const conversation = `{"aid":"AID.ASK_SUP.v1","inputs":{"q":"é😀"},"ds_state":{"slots":{}}}` + "\r\n" +
	`{"aid":"AID.🙂.v1"}` + "\n" + ` ` + "\n" + `{"aid":"AID.NOOP.v1","request_id":7}` + "\r\n"

func wantConversation(t testing.TB, c *stream) {
	t.Helper()
	want(t, c, `{"ok":true,"status":"OK","output_json":"{\"q\":\"é😀\"}","error":"","ds_state":{"delta":true,"slots":{"1":{"type":"ask_sup","provenance":"ask_sup","content_json":"{\"q\":\"é😀\"}","size_bytes":14}},"removed_slots":[]}}`)
	want(t, c, `{"ok":false,"error":"tool not found: AID.🙂.v1"}`)
	want(t, c, `{"ok":false,"error":"invalid JSON"}`)
	want(t, c, strings.TrimSuffix(nop, "}")+`,"request_id":7}`)
}

// gap lets the server take what was written before the rest comes.
const gap = 300 * time.Microsecond

func TestAnySplitGivesTheSameReplies(t *testing.T) {
	overAll(t, func(t *testing.T, over string) {
		c := serve(t, over, newDir(t), nil, "--serve", "builtin").dial(t)
		step := 1
		if testing.Short() {
			step = 5
		}
		for at := 0; at <= len(conversation); at += step {
			c.send([]byte(conversation[:at]))
			time.Sleep(gap)
			c.send([]byte(conversation[at:]))
			wantConversation(t, c)
		}
		for i := range len(conversation) {
			c.send([]byte(conversation[i : i+1]))
			time.Sleep(gap / 10)
		}
		wantConversation(t, c)
	})
}

func TestLinesAtTheLimit(t *testing.T) {
	overAll(t, func(t *testing.T, over string) {
		srv := serve(t, over, newDir(t), nil, "--serve", "builtin")
		c := srv.dial(t)
		line := func(n int) string {
			const head, tail = `{"aid":"AID.NOOP.v1","x":"`, `"}`
			return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
		}
		const tooLong = `{"ok":false,"error":"line exceeds 10MB limit"}`
		c.w.Write([]byte(line(maxLine) + "\n"))
		want(t, c, nop)
		c.w.Write([]byte(line(maxLine) + "\r\n"))
		want(t, c, nop)
		go c.w.Write([]byte(line(maxLine+1) + "\n" + `{"aid":"AID.NOOP.v1"}` + "\n"))
		want(t, c, tooLong)
		if over != stdio {
			want(t, c, ended)
			return
		}
		want(t, c, nop) // stdin goes on behind the line
		c.w.Write([]byte(line(2*maxLine+5) + "\n"))
		want(t, c, tooLong)
		c.w.Write([]byte(strings.Repeat("y", maxLine+1)))
		c.halfClose()
		want(t, c, tooLong)
		want(t, c, ended)
		if code := srv.exit(patience); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

// TestPipelined sends more lines than may be queued (1,024) in one write.
func TestPipelined(t *testing.T) {
	overAll(t, func(t *testing.T, over string) {
		c := serve(t, over, newDir(t), nil, "--serve", "builtin").dial(t)
		var b strings.Builder
		const n = 5000
		for i := range n {
			if i%3 == 0 { // blocks: goes through the executor
				fmt.Fprintf(&b, `{"aid":"AID.MEMORY.SEARCH.v1","request_id":%d}`+"\n", i)
				continue
			}
			fmt.Fprintf(&b, `{"aid":"AID.NOOP.v1","request_id":%d}`+"\n", i)
		}
		go func() { c.w.Write([]byte(b.String())); c.halfClose() }()
		for i := range n {
			if got := c.next(patience); !strings.HasSuffix(got, fmt.Sprintf(`,"request_id":%d}`, i)) {
				t.Fatalf("reply %d: %s", i, clip(got))
			}
		}
		want(t, c, ended)
	})
}

// TestASlowReaderDelaysOnlyItself: 60 replies of about a megabyte wait for a reader while others
// are served.
func TestASlowReaderDelaysOnlyItself(t *testing.T) {
	for _, over := range []string{unix, tcp} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, over, newDir(t), nil, "--serve", "builtin")
			nc := srv.dialConn(t)
			defer nc.Close()
			const n = 60
			line := `{"aid":"AID.ASK_SUP.v1","inputs":{"t":"` + strings.Repeat("x", 500000) + `"}}` + "\n"
			go nc.Write([]byte(strings.Repeat(line, n)))
			time.Sleep(time.Second)
			other := srv.dial(t)
			say1(other, `{"aid":"AID.NOOP.v1"}`)
			want(t, other, nop)
			c := connStream(nc)
			for i := range n {
				if got := c.next(patience); !strings.HasPrefix(got, `{"ok":true,"status":"OK","output_json":"{\"t\":\"xxx`) {
					t.Fatalf("reply %d: %s", i, clip(got))
				}
			}
		})
	}
}

// TestAResetDiscardsTheFragment: an orderly end makes a line of it, a reset does not.
func TestAResetDiscardsTheFragment(t *testing.T) {
	root := newDir(t)
	srv := serve(t, tcp, root, []string{"MACHINA_LEASE_ENFORCE=0"}, "--serve", "builtin")
	const fragment = `{"aid":"AID.MEMORY.APPEND.v1","inputs":{"stream":"%s","text":"x"}}`
	reset := srv.dialConn(t).(*net.TCPConn)
	fmt.Fprintf(reset, fragment, "reset")
	time.Sleep(50 * time.Millisecond)
	reset.SetLinger(0)
	reset.Close()
	orderly := srv.dialConn(t).(*net.TCPConn)
	fmt.Fprintf(orderly, fragment, "orderly")
	orderly.CloseWrite()
	if got := connStream(orderly).next(patience); !strings.Contains(got, `"status":"OK"`) {
		t.Errorf("orderly end: %s", got)
	}
	if _, err := os.Stat(filepath.Join(root, "work", "memory", "reset.jsonl")); err == nil {
		t.Error("the fragment before a reset was run")
	}
}

// TestRepliesAtTheLimit makes a reply of exactly 1 MiB with its end, and one of a byte more.
func TestRepliesAtTheLimit(t *testing.T) {
	overAll(t, func(t *testing.T, over string) {
		c := serve(t, over, newDir(t), nil, "--serve", "builtin").dial(t)
		ask := func(n int, id string) string {
			say1(c, fmt.Sprintf(`{"aid":"AID.ASK_SUP.v1","inputs":{"t":"%s"},"request_id":"%s","ds_state":{"slots":{}}}`, strings.Repeat("x", n), id))
			return c.next(patience)
		}
		base := len(ask(100000, "i")) + 1
		n := 100000 + (maxReply-base)/2
		id := strings.Repeat("i", 1+(maxReply-base)%2) // two bytes for one of the text; the size has six digits either way
		if got := ask(n, id); len(got)+1 != maxReply || !strings.HasPrefix(got, `{"ok":true`) {
			t.Errorf("%d bytes: %s, want %d", len(got)+1, clip(got), maxReply)
		}
		if got := ask(n, id+"i"); !strings.HasPrefix(got, `{"ok":false,"status":"TOOL_ERROR","output_json":"{}","error":"output exceeds 1MB limit"`) {
			t.Errorf("a byte more: %s", clip(got))
		}
	})
}

// TestAStuckReaderIsClosed: no progress for 30 s (toolhost §2.2).
func TestAStuckReaderIsClosed(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for real time")
	}
	t.Parallel()
	srv := serve(t, unix, newDir(t), nil, "--serve", "builtin")
	nc := srv.dialConn(t)
	defer nc.Close()
	line := `{"aid":"AID.ASK_SUP.v1","inputs":{"t":"` + strings.Repeat("x", 500000) + `"}}` + "\n"
	go nc.Write([]byte(strings.Repeat(line, 60)))
	watch := srv.dial(t)
	for deadline := time.Now().Add(50 * time.Second); time.Now().Before(deadline); time.Sleep(time.Second) {
		say1(watch, `{"aid":"_stats"}`)
		if got := watch.next(patience); strings.HasPrefix(got, `{"ok":true,"sessions":1,`) {
			return
		}
	}
	t.Error("the stuck connection still counts as a session after 50 s")
}
