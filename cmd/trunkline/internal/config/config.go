package config

import (
	"fmt"
	"strings"
)

// Config holds every setting with its value in force. Build one with Load; it does not change
// afterwards.
type Config struct {
	Kernel   Kernel
	HTTP     HTTP
	Toolhost Toolhost
	Admin    Admin
	Store    Store
	Log      Log

	origins   map[string]Origin
	strangers []string // variables of the environment that look like settings and are none
	file      string
	dev       bool
}

// Kernel is the section of kernel IPC (kernel-ipc §6) and of the envelope services on it (envelope
// §6). Seconds and milliseconds are whole numbers as in the settings' names.
type Kernel struct {
	Access
	Loops            int
	MaxFrameBytes    int
	MaxConnections   int
	QueueCapacity    int
	ReadTimeoutSecs  int
	WriteTimeoutSecs int

	DefaultQueryTimeoutMs   int
	MaxQueryTimeoutMs       int
	StreamBufferEvents      int
	StreamBufferBytes       int
	StreamBufferTotalBytes  int
	SubscriptionNameBytes   int
	MaxStreamsPerConnection int
	MaxEventTypes           int

	MaxProcesses         int
	HugePages            bool
	MaxRateLimitUsers    int
	DequeueLeaseSecs     int
	CleanupIntervalSecs  int
	ProcessRetentionSecs int
	ShutdownGraceSecs    int

	MaxEnvelopes          int
	MaxEnvelopeBytes      int
	EnvelopeRetentionSecs int
	MaxSessions           int
	MaxSessionBytes       int
	SessionRetentionSecs  int
}

// HTTP is the section of the envelope exchange: of its HTTP listener, and where noted of its
// commands (envelope §6). An empty ListenAddr switches the listener off.
type HTTP struct {
	Access
	MaxBodyBytes          int
	MaxInFlight           int
	MaxConnections        int
	ReadHeaderTimeoutSecs int
	ReadBodyTimeoutSecs   int
	IdleTimeoutSecs       int
	WriteTimeoutSecs      int
	MaxHeaderBytes        int
	DefaultStageOrder     []string
}

// Admin is the admin listener's section. ListenAddr "" switches the listener off.
type Admin struct {
	ListenAddr   string
	InsecureBind bool
	Pprof        bool
}

// Store holds what survives a restart, and how.
type Store struct {
	Mode                 string
	Dir                  string
	SnapshotBytes        int
	SnapshotIntervalSecs int
}

// Log is the section of the process log.
type Log struct {
	Level  string
	Format string
}

// Origin is where a value came from.
type Origin struct {
	// Layer is one of layerDefault, layerDev, layerFile, layerEnv, layerFlag.
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
)

// String returns "default", "dev", "file PATH", "env NAME" or "flag NAME".
func (o Origin) String() string {
	if o.Name == "" {
		return o.Layer
	}
	return o.Layer + " " + o.Name
}

// File returns the path of the settings file that was read, "" if none.
func (c *Config) File() string { return c.file }

// Row is one setting as shown to people.
type Row struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"`
	Help   string `json:"help"`
}

// Rows returns every setting in the order of the table, with the value in force and its origin.
func (c *Config) Rows() []Row {
	rows := make([]Row, 0, len(table))
	for _, s := range table {
		rows = append(rows, Row{Key: s.key, Value: s.value(c), Origin: c.origins[s.key].String(), Help: s.help})
	}
	return rows
}

// counts returns how many settings each layer decided.
func (c *Config) counts() map[string]int {
	n := make(map[string]int)
	for _, o := range c.origins {
		n[o.Layer]++
	}
	return n
}

// Summary returns in one line where the settings came from.
func (c *Config) Summary() string {
	n := c.counts()
	var parts []string
	add := func(layer, text string) {
		if n[layer] > 0 {
			parts = append(parts, fmt.Sprintf("%d from %s", n[layer], text))
		}
	}
	add(layerFlag, "flags")
	add(layerEnv, "environment")
	if c.file != "" {
		parts = append(parts, fmt.Sprintf("%d from file %s", n[layerFile], c.file))
	}
	add(layerDev, "--dev")
	add(layerDefault, "defaults")
	return strings.Join(parts, ", ")
}
