// Package config turns flags, environment, a YAML file and defaults into one struct, and remembers
// where every value came from.
//
// One setting has one name everywhere. kernel.max_frame_bytes is
//
//	--set kernel.max_frame_bytes=N            a flag, strongest
//	TRUNKLINE_KERNEL_MAX_FRAME_BYTES=N        the environment
//	kernel: {max_frame_bytes: N}              the file: --config PATH, else ./trunkline.yaml
//	5242880                                   the default
//
// The table in settings.go is the single list: parsing, ranges, the reference shown by "config
// show" and the struct fields all come from its rows. A key that is not in it is an error that
// names the nearest key that is. An environment variable whose first word is no section, nor within
// two edits of one, belongs to another program (TRUNKLINE_BIN): it is a warning.
package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"trunkline/engine/runtime"
	"trunkline/handlers/exchange"
	"trunkline/handlers/ipc"
	"trunkline/handlers/toolhost"
)

// Config holds every setting with its value in force. Build one with Load; it does not change
// afterwards: Reloaded returns another one.
type Config struct {
	Kernel   Kernel
	HTTP     HTTP
	Toolhost Toolhost
	Threads  Threads
	Exacta   Exacta
	Admin    Admin
	Store    Store
	Log      Log
	Cluster  Cluster

	origins   map[string]Origin
	strangers []string // variables of the environment that look like settings and are none
	file      string
	blank     bool // the file has no byte
	dev       bool
}

// RuntimeConfig is the configuration of the state machines, under a name that Kernel can embed.
type RuntimeConfig = runtime.Config

// Kernel is the section of kernel IPC (kernel-ipc §6) and of the envelope services on it (envelope
// §6). The settings of the service are fields of its own configuration.
type Kernel struct {
	Access
	ipc.Config
	RuntimeConfig
	Loops         int
	WriteTimeout  time.Duration
	ShutdownGrace time.Duration
	LameDuck      time.Duration
	HugePages     bool
}

// HTTP is the section of the envelope exchange: of its HTTP listener, and where noted of its
// commands (envelope §6). An empty ListenAddr switches the listener off.
type HTTP struct {
	Access
	exchange.HTTPConfig
	DefaultStageOrder []string
}

// Toolhost is the section of the tool server in serve (toolhost §2.3). An empty ListenAddr switches
// it off. Its tools take the environment names of the protocol (MACHINA_…) beside these settings.
type Toolhost struct {
	Access
	toolhost.Config
	MaxConnections int
	Loops          int
	Plugins        []string
	Root           string
}

// Admin is the admin listener's section. ListenAddr "" switches the listener off.
type Admin struct {
	ListenAddr   string
	InsecureBind bool
	AllowedHosts []string
	Pprof        bool
	// ConsoleTokenFile and ConsoleOperatorTokenFile hold the tokens of readers.
	ConsoleTokenFile         string
	ConsoleOperatorTokenFile string
	PublicMetrics            bool
	// SlowThreshold is 0 where there is no slow log. SlowEntries bounds it.
	SlowThreshold time.Duration
	SlowEntries   int
	// MonitorPayloads lets the admin listener show payloads of monitored connections.
	MonitorPayloads bool
}

// Store holds what survives a restart, and how.
type Store struct {
	Mode             string
	Dir              string
	SnapshotBytes    int64
	SnapshotInterval time.Duration
	// BackupDir is where checkpoints are made; empty: in Dir.
	BackupDir string
}

// Open reports whether users other than that of the server and its group can look into Dir.
func (s *Store) Open() (mode os.FileMode, open bool) {
	if s.Mode == StoreMemory {
		return 0, false
	}
	info, err := os.Stat(s.Dir)
	if err != nil {
		return 0, false // it is made, or cannot be opened either
	}
	return info.Mode().Perm(), info.Mode()&0o005 != 0
}

// Log is the section of the process log.
type Log struct {
	Level  string
	Format string
}

// Origin is where a value came from.
type Origin struct {
	// Layer is one of layerDefault, layerDev, layerFile, layerEnv, layerFlag, layerSocket.
	Layer string
	// Name is the file path, the environment variable or the flag; empty for defaults.
	Name string
}

// Layers of settings, weakest first.
const (
	layerDefault = "default"
	layerDev     = "dev" // what --dev puts over the defaults
	layerFile    = "file"
	layerEnv     = "env"
	layerFlag    = "flag"
	layerSocket  = "socket" // what the supervisor of the process has opened
)

// String returns "default", "dev", "file PATH", "env NAME" or "flag NAME".
func (o Origin) String() string {
	if o.Name == "" {
		return o.Layer
	}
	return o.Layer + " " + o.Name
}

// Dev reports whether the server is a throw-away instance.
func (c *Config) Dev() bool { return c.dev }

// spareFiles is what a server opens beside its connections: its store, listeners, event loops,
// logs.
const spareFiles = 512

// Files returns how many files are open when every limit of connections is reached: two for each
// connection of an event loop, because one that leaves its loop needs a second one for a moment,
// and one for each of HTTP and WebSocket.
func (c *Config) Files() uint64 {
	n := 2*c.Kernel.MaxConnections + c.HTTP.MaxConnections*len(c.HTTP.ListenAddr) + spareFiles
	if len(c.Toolhost.ListenAddr) > 0 {
		n += 2 * c.Toolhost.MaxConnections
	}
	if c.Threads.KeySources() > 0 || c.dev {
		n += 3 * c.Threads.MaxConnections // of lines, and as many of HTTP
	}
	if len(c.Exacta.ListenAddr)+len(c.Exacta.WSAddr) > 0 {
		n += 3 * c.Exacta.MaxConnections
	}
	return uint64(n)
}

// File returns the path of the settings file that was read, "" if none.
func (c *Config) File() string { return c.file }

// Row is one setting as shown to people.
type Row struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"`
	// Reload is "live" if a reload changes the setting, else "restart".
	Reload string `json:"reload"`
	Help   string `json:"help"`
}

// Rows returns every setting in the order of the table, with the value in force and its origin.
func (c *Config) Rows() []Row {
	rows := make([]Row, 0, len(table))
	for _, s := range table {
		rows = append(rows, Row{Key: s.key, Value: s.value(c), Origin: c.origins[s.key].String(), Reload: s.reload(), Help: s.help})
	}
	return rows
}

// Summary returns in one line where the settings came from.
func (c *Config) Summary() string {
	n := make(map[string]int)
	for _, o := range c.origins {
		n[o.Layer]++
	}
	var parts []string
	add := func(layer, text string) {
		if n[layer] > 0 {
			parts = append(parts, fmt.Sprintf("%d from %s", n[layer], text))
		}
	}
	add(layerSocket, "sockets")
	add(layerFlag, "flags")
	add(layerEnv, "environment")
	if c.file != "" {
		parts = append(parts, fmt.Sprintf("%d from file %s", n[layerFile], c.file))
	}
	add(layerDev, "--dev")
	add(layerDefault, "defaults")
	return strings.Join(parts, ", ")
}

// validate checks what single ranges cannot see.
func (c *Config) validate() problems {
	var p problems
	p = append(p, c.checkStore()...)
	p = append(p, c.checkCluster()...)
	if k := &c.Kernel; k.DefaultQueryTimeout > k.MaxQueryTimeout {
		p.add("cannot use kernel.default_query_timeout_ms = %d: it is above kernel.max_query_timeout_ms = %d",
			k.DefaultQueryTimeout.Milliseconds(), k.MaxQueryTimeout.Milliseconds())
	}
	p = append(p, c.Kernel.check()...)
	p = append(p, c.HTTP.check()...)
	p = append(p, c.Toolhost.check()...)
	p = append(p, c.checkThreads()...)
	p = append(p, c.Exacta.check()...)
	p = append(p, checkStages(c.HTTP.DefaultStageOrder)...)
	p = append(p, checkHosts(keyAdminHosts, c.Admin.AllowedHosts)...)
	if a := c.Admin; a.ListenAddr != "" {
		loop, err := isLoopback(a.ListenAddr)
		if err != nil {
			p.add("cannot use admin.listen_addr = %q: %v", a.ListenAddr, err)
		} else if !loop && !a.InsecureBind && !a.HasTokens() {
			p.add("cannot use admin.listen_addr = %q: an address beyond loopback needs tokens: %s and %s are not set (admin.insecure_bind=true opens it to anybody)",
				a.ListenAddr, keyConsoleToken, keyConsoleOperator)
		}
	}
	return p
}

// checkStore refuses what a server cannot do with its store, with what to do about it. A
// store.mode that was not chosen has one too.
func (c *Config) checkStore() problems {
	mode := fmt.Sprintf("store.mode is %s (%s)", c.Store.Mode, c.origins[keyStoreMode])
	switch {
	case c.Store.Mode == StoreMemory:
		return nil
	case c.dev:
		return problems{fmt.Sprintf("cannot use --dev: %s, and --dev keeps nothing; leave one of the two out", mode)}
	}
	var p problems
	if c.Store.Dir == "" {
		p.add("cannot use store.dir = \"\": %s; name a directory, or keep nothing with store.mode=memory", mode)
	}
	if c.Kernel.MaxFrameBytes > maxStoredFrame {
		p.add(
			"cannot use kernel.max_frame_bytes = %d: %s, where a change must fit a record; lower it to %d, or keep nothing with store.mode=memory",
			c.Kernel.MaxFrameBytes,
			mode,
			maxStoredFrame,
		)
	}
	return p
}

// checkStages refuses what an envelope's own stage_order must not have either (envelope §3.2).
func checkStages(order []string) problems {
	for i, name := range order {
		if slices.Contains(order[:i], name) {
			return problems{fmt.Sprintf("cannot use http.default_stage_order: %q is in it twice", name)}
		}
	}
	return nil
}

// The settings that the commands of the envelope exchange take.
const (
	keyMaxBody    = "http.max_body_bytes"
	keyStageOrder = "http.default_stage_order"
)

// LoadExchange reads what the commands of the envelope exchange take from the settings:
// MaxBodyBytes and DefaultStageOrder, from sets (the values of --set), else from the environment,
// else from the defaults; everything else is left zero.
//
// It is not Load, for two reasons. These commands are called once per step of a pipeline and must
// start fast; and what they answer must not depend on a file that happens to lie in the caller's
// working directory, or on variables meant for a server.
func LoadExchange(sets []string, lookup func(string) (string, bool)) (HTTP, error) {
	var c Config
	given := make(map[string]string) // as with all flags, the last one wins
	for _, pair := range sets {
		if key, value, ok := strings.Cut(pair, "="); ok {
			given[key] = value
		}
	}
	for _, key := range []string{keyMaxBody, keyStageOrder} {
		s, _ := find(key)
		v, from := s.def, Origin{Layer: layerDefault}
		if text, ok := lookup(envName(key)); ok {
			v, from = text, Origin{layerEnv, envName(key)}
		}
		if text, ok := given[key]; ok {
			v, from = text, Origin{layerFlag, "--" + flagSet}
		}
		if err := s.assign(&c, v); err != nil {
			return HTTP{}, fmt.Errorf("cannot use %s = %s (%s): %w", key, show(v), from, err)
		}
	}
	for _, pair := range sets {
		key, _, ok := strings.Cut(pair, "=")
		if !ok || key != keyMaxBody && key != keyStageOrder {
			return HTTP{}, fmt.Errorf("cannot use --%s %q: this command takes %s=N and %s=LIST", flagSet, pair, keyMaxBody, keyStageOrder)
		}
	}
	if p := checkStages(c.HTTP.DefaultStageOrder); p != nil {
		return HTTP{}, p
	}
	return c.HTTP, nil
}
