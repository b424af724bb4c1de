package exacta

import (
	"cmp"
	"slices"
	"time"
)

// Limits are those of the options of a server that its projects know (exacta §6.1). A zero field
// has its default.
type Limits struct {
	Parked        int // requests of a project that wait for an activity, and cancels that wait
	JournalEvents int // of a project
	JournalBytes  int // the same
	ReplayEntries int // answers that are kept for repeats
	ReplayBytes   int // the same
	PlanValidity  time.Duration
	Level         string // least important level of a LogEntry that is sent
}

// The defaults of Limits.
const (
	maxParked     = 64
	journalEvents = 10_000
	journalBytes  = 16 << 20
	replayEntries = 4096
	replayBytes   = 32 << 20
	planValidity  = 1800 * time.Second
	logLevel      = "INFO"
)

// WithDefaults returns l with its defaults.
func (l Limits) WithDefaults() Limits {
	l.Parked = cmp.Or(l.Parked, maxParked)
	l.JournalEvents = cmp.Or(l.JournalEvents, journalEvents)
	l.JournalBytes = cmp.Or(l.JournalBytes, journalBytes)
	l.ReplayEntries = cmp.Or(l.ReplayEntries, replayEntries)
	l.ReplayBytes = cmp.Or(l.ReplayBytes, replayBytes)
	l.PlanValidity = cmp.Or(l.PlanValidity, planValidity)
	l.Level = cmp.Or(l.Level, logLevel)
	return l
}

// Levels returns the levels of a LogEntry (exacta §3.4), the most important one first.
func Levels() []string { return []string{"ERROR", "WARN", "INFO", "DEBUG", "TRACE"} }

// logs reports whether a LogEntry of a level is sent.
func (l *Limits) logs(level string) bool {
	return slices.Index(Levels(), level) <= slices.Index(Levels(), l.Level)
}
