// Package doctor looks at what a server with given settings would meet on this machine, and at the
// server itself where one runs: a table of small checks, each with what was seen and what to do
// about it.
//
// Nothing is changed, but for files that are made and removed in the directory of the store, and
// each free address, which is opened for a moment.
package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/obs"
)

// Result is the outcome of a check.
type Result string

// The results of a check.
const (
	OK Result = "ok"
	// Warning means that a server works, and may not for long, or not as well as it could.
	Warning Result = "warning"
	// Failed means that a server does not start, or that its clients are refused.
	Failed Result = "failed"
	// Skipped means that there is nothing to look at.
	Skipped Result = "skipped"
)

// Finding is what a check found about one subject.
type Finding struct {
	// ID is the name of the check. It stays the same over versions.
	ID string `json:"id"`
	// Subject is a setting, a section, an address or a file.
	Subject string `json:"subject"`
	Result  Result `json:"result"`
	// Evidence is what was seen.
	Evidence string `json:"evidence"`
	// Fix is what to do, "" where nothing is wrong.
	Fix string `json:"fix"`
}

// Report is the result of all checks, in the order of the table.
type Report struct {
	// OK means that no check failed.
	OK       bool      `json:"ok"`
	Warnings int       `json:"warnings"`
	Failures int       `json:"failures"`
	Checks   []Finding `json:"checks"`
}

// Options is what the checks look at.
type Options struct {
	// Config is the settings; nil if they cannot be used, which Err describes.
	Config *config.Config
	Err    error
	// Build is of this program; a server that runs is compared with it.
	Build obs.Build
	// Ask decodes what an admin listener answers at a path.
	Ask func(ctx context.Context, addr, path string, into any) error
	// Root is put before the paths of /proc and /sys; "" is the machine's own. For tests.
	Root string
	// Getenv reads the environment.
	Getenv func(string) string
}

// check is one question. A check of several subjects has several findings.
type check struct {
	id    string
	named bool // it looks at what the settings name: one of Named
	run   func(context.Context, *subject) []Finding
}

// checks is the table. The clock is last: it is compared over the time of all others.
func checks() []check {
	return []check{
		{"settings", false, settings},
		{"store.directory", true, inStore(storeDirectory)},
		{"store.layout", false, inStore(storeLayout)},
		{"store.lock", false, inStore(storeLock)},
		{"store.filesystem", false, inStore(storeFilesystem)},
		{"store.space", false, inStore(storeSpace)},
		{"store.sync", false, inStore(storeSync)},
		{"directories", true, directories},
		{"files", false, openFiles},
		{"listeners", true, listeners},
		{"tls.key", true, eachTLS(tlsKey)},
		{"tls.expiry", true, eachTLS(tlsExpiry)},
		{"tls.names", true, eachTLS(tlsNames)},
		{"tls.clients", true, eachTLS(tlsClients)},
		{"threads.keys", true, threadKeys},
		{"exacta.secrets", true, projectSecrets},
		{"console.tokens", true, consoleTokens},
		{"cluster", true, clusterNodes},
		{"cgroup.cpu", false, cgroupCPU},
		{"cgroup.memory", false, cgroupMemory},
		{"memory.huge_pages", false, hugePages},
		{"server", false, runningServer},
		{"clock", false, clock},
	}
}

// subject is what one run looks at.
type subject struct {
	Options
	cfg     *config.Config
	began   time.Time
	admin   admin
	offline bool // neither a server nor another machine is asked
}

// Run makes all checks. It ends early with what it has when ctx ends.
func Run(ctx context.Context, o Options) *Report {
	s := &subject{Options: o, cfg: o.Config, began: time.Now()}
	if s.cfg != nil {
		s.admin = s.askAdmin(ctx)
	}
	return s.report(ctx, checks())
}

// Named makes the checks of what settings name: certificates, keys, tokens, directories, addresses.
// It asks neither a server nor another machine: an address that is in use, or that this user may
// not open, is a warning, for it may be that of the server.
func Named(ctx context.Context, c *config.Config) *Report {
	s := &subject{cfg: c, began: time.Now(), offline: true}
	return s.report(ctx, slices.DeleteFunc(checks(), func(c check) bool { return !c.named }))
}

// report makes checks.
func (s *subject) report(ctx context.Context, list []check) *Report {
	r := &Report{Checks: []Finding{}}
	for _, c := range list {
		if ctx.Err() != nil {
			r.add(c.id, Finding{Result: Skipped, Evidence: "ended before this check: " + ctx.Err().Error()})
			continue
		}
		if s.cfg == nil && c.id != "settings" && c.id != "clock" {
			r.add(c.id, Finding{Result: Skipped, Evidence: "the settings cannot be used"})
			continue
		}
		for _, f := range c.run(ctx, s) {
			r.add(c.id, f)
		}
	}
	r.OK = r.Failures == 0
	return r
}

func (r *Report) add(id string, f Finding) {
	f.ID = id
	switch f.Result {
	case Warning:
		r.Warnings++
	case Failed:
		r.Failures++
	}
	r.Checks = append(r.Checks, f)
}

func ok(subject, format string, args ...any) Finding {
	return Finding{Subject: subject, Result: OK, Evidence: fmt.Sprintf(format, args...)}
}

func skip(subject, format string, args ...any) Finding {
	return Finding{Subject: subject, Result: Skipped, Evidence: fmt.Sprintf(format, args...)}
}

func warn(subject, fix, format string, args ...any) Finding {
	return Finding{Subject: subject, Result: Warning, Evidence: fmt.Sprintf(format, args...), Fix: fix}
}

func fail(subject, fix, format string, args ...any) Finding {
	return Finding{Subject: subject, Result: Failed, Evidence: fmt.Sprintf(format, args...), Fix: fix}
}

// path returns where a file of /proc or /sys is.
func (s *subject) path(name string) string { return filepath.Join(s.Root, name) }

// settings looks where the settings come from, and what was not taken.
func settings(_ context.Context, s *subject) []Finding {
	const fix = "'trunkline config schema' prints the names, ranges and defaults of all settings"
	if s.cfg == nil {
		return []Finding{fail("", fix, "%v", s.Err)}
	}
	file := "no settings file"
	if f := s.cfg.File(); f != "" {
		file = "file " + f
	}
	found := []Finding{ok("", "%s; %s", s.cfg.Summary(), file)}
	for _, w := range s.cfg.Warnings() {
		found = append(found, warn("", "correct the name, or unset the variable", "%s", w))
	}
	return found
}
