package store

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
	"trunkline/handlers/threads/token"
)

// ThreadsPart measures agent threads beside the kernel protocol and peers.
func ThreadsPart() part.Part {
	return common(part.Part{
		Name: "threads", What: "agent threads beside the kernel, a trivial tool, net/http and the SDKs of MCP",
		Children: map[string]func([]string) error{childHandler: runBareHandler},
		Run: func(r *part.Run) error {
			t := &talk{bench: bench{Run: r}}
			return t.measure(threadGoals, t.startKernel, t.startThreads, t.createThreads, t.startPeers, t.addCells)
		},
	})
}

// talk is the servers of the part about agent threads, and who asks them: each connection is an
// agent of its own, because the calls of one agent over MCP are bounded.
type talk struct {
	bench
	kernel, threads *load.Server
	bare, node      *load.Server // node is nil where it is not installed

	web, lines, tools string   // addresses of threads
	tokens            []string // by connection
	own               []string // a thread of each connection, and one more for all
}

func (t *talk) startKernel() (err error) {
	if t.kernel, err = t.Trunkline(settings(t.Run, always)...); err != nil {
		return err
	}
	return prepare(t.kernel.Addr, t.Rows)
}

const (
	workspace = "bench"
	issuer    = "trunkline-bench"
	audience  = "orkiva" // the default of threads.audience
	tokenLife = 24 * time.Hour
	// askTimeout bounds one request beside a load, and the wait for a listener.
	askTimeout = 10 * time.Second
)

// startMore starts a server with more than the kernel protocol, and returns where each of the
// listeners of those names listens.
func startMore(r *part.Run, name, mode string, more []string, listeners ...string) (s *load.Server, addrs []string, err error) {
	c := load.Trunkline(r.Binary, settings(r, mode, append(more, "toolhost.listen_addr=127.0.0.1:0", "toolhost.loops="+strconv.Itoa(r.Loops))...)...)
	c.Name, c.Env = name, []string{"MACHINA_API_TOKEN="}
	if s, err = r.Start(c); err != nil {
		return nil, nil, err
	}
	for _, name := range listeners {
		pattern := regexp.MustCompile(`(?m)^` + name + ` listening on (127\.0\.0\.1:\d+)`)
		m := pattern.FindStringSubmatch(s.Output())
		for start := time.Now(); m == nil; m = pattern.FindStringSubmatch(s.Output()) {
			if time.Since(start) > askTimeout {
				return nil, nil, fmt.Errorf("cannot find where %s listens:\n%s", name, s.Output())
			}
			time.Sleep(time.Millisecond)
		}
		addrs = append(addrs, m[1])
	}
	return s, addrs, nil
}

// ask writes a request to a connection of its own, and reads until the replies match, of which it
// returns the first group.
func ask(addr string, request []byte, pattern string) (found string, err error) {
	c, err := load.Dial(addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(askTimeout)) // an error shows with the next call
	if _, err := c.Write(request); err != nil {
		return "", err
	}
	want, buf, n := regexp.MustCompile(pattern), make([]byte, 64<<10), 0
	for {
		more, err := c.Read(buf[n:])
		n += more
		if m := want.FindSubmatch(buf[:n]); m != nil {
			return string(m[1]), nil
		}
		if err != nil || n == len(buf) {
			return "", fmt.Errorf("no %s in %q: %w", pattern, buf[:n], err)
		}
	}
}

// startThreads starts the server in mode always, with a key of its own and the tool server beside
// agent threads, and signs the tokens of all agents.
func (t *talk) startThreads() error {
	private, public, err := token.NewKey()
	if err != nil {
		return err
	}
	key := filepath.Join(t.Rig.Dir, "threads.pub")
	if err := os.WriteFile(key, public, 0o600); err != nil {
		return fmt.Errorf("cannot write the key: %w", err)
	}
	more := []string{"threads.public_key_file=" + key, "threads.issuer=" + issuer, "threads.loops=" + strconv.Itoa(t.Loops), "threads.listen_addr=127.0.0.1:0",
		"threads.lines_addr=127.0.0.1:0", "threads.supervisor_mode=off", "threads.rate_mcp_calls_per_agent_per_minute=1000000"}
	s, at, err := startMore(t.Run, threadServer, always, more, "threads http", "threads lines", "toolhost")
	if err != nil {
		return err
	}
	t.threads, t.web, t.lines, t.tools = s, at[0], at[1], at[2]
	now := float64(time.Now().Unix())
	for i := range crowd.conns {
		name := fmt.Sprintf("agent-%d", i)
		text, err := token.Sign(private, &token.Claims{Agent: name, Workspace: workspace, Session: name, ID: name, Role: token.Coordinator,
			Issued: now, Expires: now + tokenLife.Seconds()}, issuer, audience)
		if err != nil {
			return fmt.Errorf("cannot sign a token: %w", err)
		}
		t.tokens = append(t.tokens, text)
	}
	return nil
}

// createThreads creates a thread for each connection, and one for all.
func (t *talk) createThreads() error {
	for i := range len(t.tokens) + 1 {
		body := fmt.Appendf(nil, `{"workspace_id":%q,"title":"%d","type":"workflow","participants":["agent-0"]}`, workspace, i)
		id, err := ask(t.web, load.AppendPost(nil, "/v1/create_thread", body, bearer(t.tokens[0])), `"thread_id":"([^"]+)"`)
		if err != nil {
			return fmt.Errorf("cannot create a thread: %w", err)
		}
		t.own = append(t.own, id)
	}
	return nil
}

func bearer(token string) string { return "Authorization: Bearer " + token }
