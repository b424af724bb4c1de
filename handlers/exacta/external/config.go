package external

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// Kinds of planners (exacta §4.18, ai.provider).
const (
	Builtin    = "builtin"
	Subprocess = "subprocess"
	OpenAI     = "openai_compatible"
)

// Modes of the cache (exacta §4.20).
const (
	ReadWrite = "read_write"
	ReadOnly  = "read_only" // without an answer in the cache, the planner is not available
	Off       = "off"
)

// Config is how the operator of the server sets the planner up (exacta §6.1). Nothing of it comes
// from a project (exacta D13).
type Config struct {
	Kind    string   // which one projects may select beside the built-in one; empty: none
	Command []string // of a subprocess: the program and its arguments
	URL     string   // of a server: /chat/completions is put behind it
	Model   string   // of a server, or the name under which answers of a program are cached; empty: that of the project
	Key     string   // of a server; empty: none is sent
	Cache   string   // empty: read_write
	Logger  *slog.Logger
}

// Check returns why a planner cannot be set up like this: which setting of the operator is wrong.
func (c *Config) Check() error {
	if !slices.Contains([]string{"", ReadWrite, ReadOnly, Off}, c.Cache) {
		return fmt.Errorf("exacta.planner_cache is %q, want read_write, read_only or off", c.Cache)
	}
	switch c.Kind {
	case "", Builtin:
		return nil
	case Subprocess:
		if len(c.Command) == 0 || c.Command[0] == "" {
			return errors.New("exacta.planner_command is not set")
		}
		if slices.ContainsFunc(c.Command, func(word string) bool { return strings.ContainsRune(word, 0) }) {
			return errors.New("exacta.planner_command has a NUL")
		}
		return nil
	case OpenAI:
		return c.checkServer()
	}
	return fmt.Errorf("exacta.planner is %q, want builtin, subprocess or openai_compatible", c.Kind)
}

func (c *Config) checkServer() error {
	if c.URL == "" {
		return errors.New("exacta.planner_url is not set")
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return errors.New("exacta.planner_url is no address: want https://HOST/PATH without user, query and fragment") // it may hold a password
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return fmt.Errorf("exacta.planner_url is %q, want https, or http to this machine", c.URL)
	}
	if strings.ContainsFunc(c.Key, func(r rune) bool { return unicode.IsControl(r) || r > unicode.MaxASCII }) {
		return errors.New("the key is not one line of ASCII") // no header has others
	}
	return nil
}

// loopback reports whether a host is this machine, without asking for its address.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
