package node

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"trunkline/fuzz/kit"
)

// childEnv has the configuration of a node that is a process of its own.
const childEnv = "NODE_TEST_CHILD"

// answer is what a child writes for each line that it reads.
type answer struct {
	Err     string
	Health  Health
	Count   uint64
	Listens []string
}

// runChild is the process of a node: it answers lines until its input ends.
func runChild(text string) int {
	var cfg Config
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		panic(err)
	}
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})).With("node", cfg.Node)
	out := json.NewEncoder(os.Stdout)
	n, err := Start(context.Background(), cfg)
	if err != nil {
		_ = out.Encode(answer{Err: err.Error()})
		return 1
	}
	_ = out.Encode(answer{})
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		verb, rest, _ := strings.Cut(in.Text(), " ")
		wait := 5 * time.Second
		if verb == "close" { // a server that helps another to catch up takes longer
			wait = patience
		}
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		a, err := act(ctx, n, verb, rest)
		cancel()
		if err != nil {
			a.Err = err.Error()
		}
		if out.Encode(a) != nil {
			return 1
		}
	}
	return 0
}

func act(ctx context.Context, n *Node, verb, rest string) (a answer, err error) {
	switch verb {
	case "health":
		a.Health = n.Health(ctx)
	case "join":
		err = n.AwaitQuorum(ctx)
	case "create":
		_, err = streams(n).CreateOrUpdateStream(ctx, journal)
	case "publish":
		_, err = streams(n).Publish(ctx, "journal.x", []byte(rest), jetstream.WithRetryAttempts(0), jetstream.WithMsgID(rest))
	case "count":
		var s jetstream.Stream
		if s, err = streams(n).Stream(ctx, journal.Name); err == nil {
			a.Count = s.CachedInfo().State.Msgs
		}
	case "listens":
		a.Listens, err = listening()
	case "close":
		err = n.Close(ctx)
	default:
		err = errors.New("no such verb")
	}
	return a, err
}

// listening returns the local addresses of this process's sockets that listen, as the system writes
// them.
func listening() (list []string, err error) {
	own := make(map[string]bool)
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasPrefix(to, "socket:[") {
			own[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		text, err := os.ReadFile("/proc/self/net/" + table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) > 9 && own[f[9]] && (f[3] == "0A" || strings.HasPrefix(table, "udp")) {
				list = append(list, table+" "+f[1])
			}
		}
	}
	return list, nil
}

// child is a node in a process of its own.
type child struct {
	t   *testing.T
	id  string
	cmd *exec.Cmd
	in  *json.Decoder
	out interface{ Write([]byte) (int, error) }
}

// spawn starts the process of a node and waits until it has started, or has failed with an error.
func spawn(t *testing.T, cfg Config, log *kit.Text) (*child, answer) {
	t.Helper()
	cfg.Logger = nil
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	cmd.Stderr = log
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, id: cfg.Node, cmd: cmd, in: json.NewDecoder(out), out: in}
	t.Cleanup(c.kill)
	var a answer
	if err := c.in.Decode(&a); err != nil {
		t.Fatalf("node %s: %v", cfg.Node, err)
	}
	return c, a
}

// kill ends the process without a chance to do anything.
func (c *child) kill() {
	if c.cmd != nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		c.cmd = nil
	}
}

// ask has the process do something.
func (c *child) ask(line string) answer {
	c.t.Helper()
	var a answer
	if _, err := c.out.Write([]byte(line + "\n")); err != nil {
		c.t.Fatalf("node %s: %v", c.id, err)
	}
	if err := c.in.Decode(&a); err != nil {
		c.t.Fatalf("node %s: %v", c.id, err)
	}
	return a
}

// askUntil asks again until there is no error.
func (c *child) askUntil(line string) answer {
	c.t.Helper()
	return until(c.t, "node "+c.id+": "+line, func() (answer, bool) {
		a := c.ask(line)
		return a, a.Err == ""
	})
}

// sees asks until the health is as wanted.
func (c *child) sees(what string, is func(Health) bool) Health {
	c.t.Helper()
	return until(c.t, "node "+c.id+": "+what, func() (answer, bool) {
		a := c.ask("health")
		return a, is(a.Health)
	}).Health
}
