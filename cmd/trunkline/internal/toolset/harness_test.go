package toolset

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"trunkline/engine/connection"
	"trunkline/handlers/toolhost"
)

// A set that was closed leaves no goroutine: a thread that starts processes, and the goroutine that
// waits for one, would be some.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clean takes the tool settings of the caller's shell out of the environment of one test.
func clean(t *testing.T) {
	t.Helper()
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "MACHINA_") {
			unset(t, name)
		}
	}
}

// unset is t.Setenv for a variable that must not be there.
func unset(t *testing.T, name string) {
	t.Helper()
	t.Setenv(name, "")
	if err := os.Unsetenv(name); err != nil {
		t.Fatal(err)
	}
}

// write puts a file into dir and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// declare is a tool in a manifest; more are further members, each behind a comma.
func declare(aid, more string) string {
	return `{"aid":"` + aid + `","name":"declared","deterministic":false,"tags":["tag.t"],"side_effects":["none"],` +
		`"estimate_model":{"mode":"InfinityBound"},"inputs_schema":{},"outputs_schema":{}` + more + `}`
}

func manifestOf(tools ...string) string {
	return `{"toolpack_id":"toolpack.t","toolpack_version":"1","trust_tier":"tier0_builtin","tools":[` + strings.Join(tools, ",") + `]}`
}

// worker is a tool that the shell script beside the manifest runs.
func worker(aid, script, more string) string {
	return declare(aid, `,"exec":{"kind":"process","command":["sh","`+script+`"],"mode":"serve"`+more+`}`)
}

// open makes a set that ends with the test.
func open(t *testing.T, o Options) *Set {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// plain are options that leave breakers to the environment.
func plain(plugins ...string) Options {
	return Options{Plugins: plugins, BreakerThreshold: -1, BreakerCooldown: -1}
}

// aids returns what the set can run, in the order of a list.
func (s *Set) aids(t *testing.T) (list []string) {
	t.Helper()
	for _, d := range s.Registry.Descriptors() {
		list = append(list, d.AID)
	}
	return list
}

// run calls a tool as --run does.
func (s *Set) run(aid, request string) string {
	line, _ := (&toolhost.Single{Registry: s.Registry, Timeout: ToolTimeout()}).Run(aid, strings.NewReader(request))
	return strings.TrimSuffix(string(line), "\n")
}

// talk is a session of a server of the set.
type talk struct {
	t    *testing.T
	s    connection.Session
	wake chan struct{}
}

func (s *Set) talk(t *testing.T, change func(*toolhost.Config)) *talk {
	t.Helper()
	c := s.config(t)
	if change != nil {
		change(&c)
	}
	srv := toolhost.New(c)
	p := connection.NewPort(1, "stdin")
	k := &talk{t: t, s: srv.OpenStdin(p), wake: make(chan struct{}, 1)}
	p.SetOwner(k)
	t.Cleanup(func() {
		p.SetOwner(nil)
		k.s.Closed()
		_ = srv.Close()
	})
	return k
}

// Wake implements connection.Owner.
func (k *talk) Wake(p *connection.Port) {
	p.Rearm()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// ask sends one line and waits for its reply.
func (k *talk) ask(line string) string {
	k.t.Helper()
	_, out, v := k.s.Feed([]byte(line+"\n"), nil, connection.Now())
	for v == connection.Blocked && len(out) == 0 {
		select {
		case <-k.wake:
		case <-time.After(20 * time.Second):
			k.t.Fatalf("no reply to %s", line)
		}
		out, _ = k.s.Pump(out, connection.DefaultChunkBytes, connection.Now())
	}
	return strings.TrimSuffix(string(out), "\n")
}

// status returns the word that a reply is judged by.
func status(t *testing.T, reply string) string {
	t.Helper()
	var r struct{ Status, Error string }
	if err := json.Unmarshal([]byte(reply), &r); err != nil {
		t.Fatalf("%v: %s", err, reply)
	}
	return strings.TrimSpace(r.Status + " " + r.Error)
}

// heard keeps events.
type heard struct {
	mu   sync.Mutex
	list []string
}

func (h *heard) hear(e toolhost.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, e.Name+" "+string(e.Payload))
}

// take returns what was heard of events whose name has this text in it, and forgets nothing.
func (h *heard) take(part string) (list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.list {
		if name, _, _ := strings.Cut(e, " "); strings.Contains(name, part) {
			list = append(list, e)
		}
	}
	return list
}

// config is what the environment makes of a server of these tools.
func (s *Set) config(t *testing.T) toolhost.Config {
	t.Helper()
	c, err := s.ServerConfig(toolhost.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
