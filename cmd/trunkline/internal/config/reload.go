package config

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"trunkline/cmd/trunkline/internal/cli"
)

// How a setting is changed, as Row.Reload shows it.
const (
	reloadLive    = "live"
	reloadRestart = "restart"
)

func (s setting) reload() string {
	if s.live {
		return reloadLive
	}
	return reloadRestart
}

// Reloaded returns c with the live settings of next, which was loaded later: what a running server
// goes on with. changed are the keys whose value differs from that in c, restart those of next that
// c keeps because they take a restart. The error is of type problems: the live settings of next do
// not fit the rest of c.
func (c *Config) Reloaded(next *Config) (merged *Config, changed, restart []string, err error) {
	if err := c.checkFile(next); err != nil {
		return nil, nil, nil, err
	}
	m := *c
	m.origins = maps.Clone(c.origins)
	m.strangers, m.file, m.blank = next.strangers, next.file, next.blank
	for _, s := range table {
		switch {
		case s.value(c) == s.value(next):
			m.origins[s.key] = next.origins[s.key]
			continue
		case !s.live || c.fixed(s.key, next):
			restart = append(restart, s.key)
			continue
		}
		reflect.ValueOf(s.at(&m)).Elem().Set(reflect.ValueOf(s.at(next)).Elem())
		m.origins[s.key] = next.origins[s.key]
		changed = append(changed, s.key)
	}
	if p := m.validate(); len(p) > 0 {
		p[0] = fmt.Sprintf("%s (settings that take a restart count with their old values: %s)", p[0], strings.Join(restart, ", "))
		return nil, nil, nil, p
	}
	return &m, changed, restart, nil
}

// checkFile refuses a settings file that is gone or empty and was not before: it may be that of an
// editor or a copy at work, and all of its settings would go back to their defaults.
func (c *Config) checkFile(next *Config) error {
	const instead = "a file with only {} in it stands for no settings"
	switch {
	case c.file != "" && next.file == "":
		return problems{fmt.Sprintf("cannot read settings file %s: it is gone; %s", c.file, instead)}
	case next.blank && c.file != "" && !c.blank:
		return problems{fmt.Sprintf("cannot use settings file %s: it is empty; %s", next.file, instead)}
	}
	return nil
}

// fixed reports whether a live setting takes a restart after all: a listener keeps whether it
// speaks TLS, and agent threads whether they are open.
func (c *Config) fixed(key string, next *Config) bool {
	section, name, _ := strings.Cut(key, delim)
	switch name {
	case "tls_cert_file", "tls_key_file", "tls_client_ca_file":
		theirs := next.Accesses()
		for i, a := range c.Accesses() {
			if a.Section == section && a.hasTLS() != theirs[i].hasTLS() {
				return true
			}
		}
	case "jwks_url", "jwks_file", "public_key_file", "hs256_secret_file":
		return (c.Threads.KeySources() == 0) != (next.Threads.KeySources() == 0)
	}
	return false
}

// Accesses returns those of all sections with addresses and certificates.
func (c *Config) Accesses() []*Access {
	return []*Access{&c.Kernel.Access, &c.HTTP.Access, &c.Toolhost.Access, &c.Threads.Access, &c.Exacta.Access}
}

// IsAddress reports whether key is a setting with addresses to listen on.
func IsAddress(key string) bool {
	_, known := find(key)
	return known && strings.HasSuffix(key, "_addr")
}

// NearestAddress returns the setting with addresses that is spelled most like key.
func NearestAddress(key string) string {
	best, least := "", 0
	for _, s := range table {
		if d := cli.Distance(key, s.key); IsAddress(s.key) && (best == "" || d < least) {
			best, least = s.key, d
		}
	}
	return best
}
