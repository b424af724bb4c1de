package config

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
	"trunkline/engine/smallfile"
	"trunkline/handlers/exacta"
	"trunkline/handlers/exacta/external"
)

// Exacta is the section of projects (exacta §6.1). Empty addresses switch them off in serve. The
// settings of the server are fields of its own configuration.
type Exacta struct {
	Access
	exacta.Config
	WSAddr        []string
	Loops         int
	DebugCommands string
	AuthTokenFile string
	Clock         string
	IDs           string

	// What makes plans, chosen by the operator (exacta §4.20).
	Planner        string
	PlannerCommand string // a JSON array
	PlannerURL     string
	PlannerModel   string
	PlannerKeyFile string
	PlannerCache   string
}

// The values of exacta.debug_commands.
const (
	debugAuto = "auto"
	debugOn   = "on"
	debugOff  = "off"
)

// Values of exacta.clock and exacta.ids.
const (
	clockReal  = "real"
	clockFixed = "fixed:"
	idsRandom  = "random"
	idsSeed    = "seed:"
)

// Keys that messages name.
const (
	keyTokenFile = "exacta.auth_token_file"
	keyClock     = "exacta.clock"
	keyIDs       = "exacta.ids"
	keyPlanner   = "exacta.planner"
	keyCommand   = "exacta.planner_command"

	keyPlannerKey = "exacta.planner_key_file"
)

var exactaSettings = []setting{
	{key: "exacta.ws_addr", def: "", optional: true,
		help: "addresses of projects over WebSocket, comma separated: host:port or unix:///path; empty switches it off"},
	{key: "exacta.max_connections", def: exacta.DefaultMaxConnections, min: 1, max: 65536, live: true,
		help: "open connections of lines, and as many WebSockets; one more gets an error and is closed"},
	{key: "exacta.loops", def: 0, min: 0, max: 1024,
		help: "event loops of lines; 0 chooses by the number of processors"},
	{key: "exacta.max_message_bytes", def: exacta.DefaultMaxMessage, min: 65536, max: 67108864,
		help: "largest message of a client, without the end of its line"},
	{key: "exacta.max_open_projects", def: exacta.DefaultMaxProjects, min: 1, max: 1024, live: true,
		help: "open projects; one more is refused"},
	{key: "exacta.max_inflight_per_connection", def: exacta.DefaultMaxInFlight, min: 1, max: 4096,
		help: "unanswered requests of one connection, Pause, Resume and Cancel left out; one more is refused"},
	{key: "exacta.max_parked_per_project", def: projects.DefaultParked, min: 1, max: 4096,
		help: "requests of one project that wait while a planner, a set of diffs or a build runs; one more is refused"},
	{key: "exacta.journal_events", def: projects.DefaultJournalEvents, min: 100, max: 1_000_000,
		help: "events of one project that are kept for slow readers and new connections"},
	{key: "exacta.journal_bytes", def: projects.DefaultJournalBytes, min: 1 << 20, max: 1 << 30,
		help: "bytes of these events"},
	{key: "exacta.replay_cache_entries", def: projects.DefaultReplayEntries, min: 1, max: 1_000_000,
		help: "answers that are kept for repeated requests; beyond it the oldest one is dropped"},
	{key: "exacta.replay_cache_bytes", def: projects.DefaultReplayBytes, min: 1 << 20, max: 1 << 30,
		help: "bytes of these answers"},
	{key: "exacta.debug_commands", def: debugAuto, oneOf: []string{debugAuto, debugOn, debugOff},
		help: "whether ApplyDiffSet, which needs no approval, is enabled: auto (on for stdin and unix sockets, off for TCP and WebSocket), on, off"},
	{key: "exacta.allowed_roots", def: "", optional: true,
		help: "directories that must contain the root of a project, absolute, comma separated; empty: any root may be opened"},
	{key: "exacta.diagnostics_dirs", def: "", optional: true,
		help: "directories that bundles may be written to, absolute, comma separated, beside the project's own, the temporary one and the user's"},
	{key: "exacta.ws_origins", def: "", optional: true,
		help: "origins of web pages that may connect, comma separated, beside those of this machine"},
	{key: keyTokenFile, def: "", live: true,
		help: "file with the token that clients over TCP and WebSocket must show, at least 16 bytes; empty: none"},
	{key: "exacta.key_file", def: "",
		help: "file with the key that proves what the server wrote into projects, made if it is missing; empty: trunkline/exacta.key in the user's configuration directory"},
	{key: "exacta.plan_validity_seconds", def: projects.DefaultPlanValidity, min: 1, max: 86400,
		help: "how long a plan may wait for its approval and execution"},
	{key: "exacta.log_event_level", def: projects.DefaultLevel, oneOf: projects.Levels(),
		help: "least important LogEntry that clients get"},
	{key: keyClock, def: clockReal,
		help: "real, or fixed:TIME for tests: all times are this one"},
	{key: keyIDs, def: idsRandom,
		help: "random, or seed:TEXT for tests: equal requests get equal ids"},
	{key: keyPlanner, def: external.Builtin, oneOf: []string{external.Builtin, external.Subprocess, external.OpenAI},
		help: "what projects may select with ai.provider beside builtin: subprocess (exacta.planner_command), openai_compatible (exacta.planner_url)"},
	{key: keyCommand, def: "",
		help: "program that plans, and its arguments, a JSON array; it is run without a shell"},
	{key: "exacta.planner_url", def: "",
		help: "base URL of a server that plans: https, or http on loopback"},
	{key: "exacta.planner_model", def: "",
		help: "model that the server is asked for; for a program the name under which its answers are cached; empty: ai.model of the project"},
	{key: keyPlannerKey, def: "",
		help: "file with the key of that server"},
	{key: "exacta.planner_cache", def: external.ReadWrite, oneOf: []string{external.ReadWrite, external.ReadOnly, external.Off},
		help: "whether answers of planners are kept and used again: read_write, read_only (another question fails), off"},
}

// WS is the Access of ws_addr.
func (e *Exacta) WS() *Access {
	a := e.Access
	a.ListenAddr, a.addr = e.WSAddr, "ws_addr"
	return &a
}

// Check refuses what is wrong with the section, after a change of it.
func (e *Exacta) Check() error {
	if p := e.check(); len(p) > 0 {
		return p
	}
	return nil
}

// check returns what is wrong with the section, as far as the settings show it.
func (e *Exacta) check() problems {
	p := e.Access.check()
	if _, err := e.WS().Listeners(); err != nil {
		p = append(p, err.Error())
	}
	for _, a := range []*Access{&e.Access, e.WS()} {
		for _, addr := range a.ListenAddr {
			if loop, err := isLoopback(addr); err == nil && !loop && e.AuthTokenFile == "" {
				p.add(
					"cannot use %s = %q: an address beyond loopback needs a token, and %s is not set",
					a.AddrKey(),
					addr,
					keyTokenFile,
				)
			}
		}
	}
	for _, list := range []struct {
		key  string
		dirs []string
	}{{"exacta.allowed_roots", e.AllowedRoots}, {"exacta.diagnostics_dirs", e.DiagnosticsDirs}} {
		for _, dir := range list.dirs {
			if !filepath.IsAbs(dir) {
				p.add("cannot use %s: %q is not an absolute path", list.key, dir)
			}
		}
	}
	for _, origin := range e.WSOrigins {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			p.add("cannot use exacta.ws_origins: %q is no origin, such as https://ui.example.org", origin)
		}
	}
	if _, _, err := e.times(); err != nil {
		p = append(p, err.Error())
	}
	return append(p, e.checkPlanner()...)
}

// checkPlanner refuses a planner without what it needs.
func (e *Exacta) checkPlanner() problems {
	c, err := e.planner()
	if err != nil {
		return problems{err.Error()}
	}
	if err := c.Check(); err != nil {
		return problems{fmt.Sprintf("cannot use %s = %s: %v", keyPlanner, e.Planner, err)}
	}
	return nil
}

// planner returns the external planner, without its key.
func (e *Exacta) planner() (external.Config, error) {
	argv, err := e.Argv()
	return external.Config{Kind: e.Planner, Command: argv, URL: e.PlannerURL, Model: e.PlannerModel, Cache: e.PlannerCache}, err
}

// Argv returns planner_command, nil if it is empty.
func (e *Exacta) Argv() ([]string, error) {
	if e.PlannerCommand == "" {
		return nil, nil
	}
	return Argv(keyCommand, e.PlannerCommand)
}

// times returns what clock and ids stand for. An empty seed is random ids.
func (e *Exacta) times() (clock codec.Clock, seed string, err error) {
	if text, fixed := strings.CutPrefix(e.Clock, clockFixed); fixed {
		at, err := time.Parse(time.RFC3339Nano, text)
		if y := at.UTC().Year(); err != nil || y < 1970 || y > 9999 {
			return clock, "", fmt.Errorf("cannot use %s = %q: want real or fixed:TIME from 1970 to 9999, such as fixed:2026-01-15T00:00:00Z", keyClock, e.Clock)
		}
		clock = codec.FixedClock(at)
	} else if e.Clock != clockReal {
		return clock, "", fmt.Errorf("cannot use %s = %q: want real or fixed:TIME", keyClock, e.Clock)
	}
	seed, seeded := strings.CutPrefix(e.IDs, idsSeed)
	if seeded && (seed == "" || len(seed) > codec.MaxSeed) || !seeded && e.IDs != idsRandom {
		return clock, "", fmt.Errorf("cannot use %s = %q: want random, or seed:TEXT of 1 to %d bytes", keyIDs, e.IDs, codec.MaxSeed)
	}
	if !seeded {
		seed = ""
	}
	return clock, seed, nil
}

// KeyPath returns key_file, or its place in the user's configuration directory: "" if there is
// none.
func (e *Exacta) KeyPath() string {
	if dir, err := os.UserConfigDir(); e.KeyFile == "" && err == nil {
		return filepath.Join(dir, "trunkline", "exacta.key")
	}
	return e.KeyFile
}

// Token reads auth_token_file, "" if there is none.
func (e *Exacta) Token() (string, error) {
	return secretIn(keyTokenFile, e.AuthTokenFile, exacta.MinToken)
}

// secretIn reads the secret in the file of a setting, "" if it names none. White space around the
// secret does not count.
func secretIn(key, file string, least int) (string, error) {
	return secretOf(key, file, least, exacta.MaxToken)
}

func secretOf(key, file string, least, most int) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := smallfile.Read(file)
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", key, err)
	}
	text = bytes.TrimSpace(text)
	if len(text) < least || len(text) > most {
		return "", fmt.Errorf("cannot use %s %s: a token of %d to %d bytes is expected", key, file, least, most)
	}
	return string(text), nil
}

// Server returns the configuration of the server, without its Logger. It reads the token.
func (e *Exacta) Server() (c exacta.Config, err error) {
	c = e.Config
	c.AllowedRoots, c.DiagnosticsDirs, c.KeyFile = resolved(e.AllowedRoots), resolved(e.DiagnosticsDirs), e.KeyPath()
	switch e.DebugCommands {
	case debugOn:
		c.Debug = exacta.DebugOn
	case debugOff:
		c.Debug = exacta.DebugOff
	}
	if c.Clock, c.Seed, err = e.times(); err == nil {
		c.AuthToken, err = e.Token()
	}
	if err == nil {
		c.Planner, err = e.planner()
	}
	if err == nil {
		c.Planner.Key, err = secretIn(keyPlannerKey, e.PlannerKeyFile, 1)
	}
	if err == nil {
		if err = c.Planner.Check(); err != nil {
			err = fmt.Errorf("cannot use %s = %s: %w", keyPlanner, e.Planner, err)
		}
	}
	return c, err
}

// resolved returns directories without symbolic links, as the roots of projects are. One that does
// not exist yet is left as it is.
func resolved(dirs []string) []string {
	out := make([]string, 0, len(dirs))
	for _, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		out = append(out, filepath.Clean(dir))
	}
	return out
}
