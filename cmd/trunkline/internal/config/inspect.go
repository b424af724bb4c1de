package config

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/handlers/threads/token"
)

// Finding is something that is wrong with what the settings name.
type Finding struct {
	Key string `json:"key"`
	// Warning means that a server would start all the same, or that this user cannot know.
	Warning bool   `json:"warning"`
	Text    string `json:"text"`
}

// certificateSoon is how long before its end a certificate is worth a warning.
const certificateSoon = 14 * 24 * time.Hour

// Check returns the warnings about what the settings name. The error, of type problems, has all the
// rest of what is wrong.
func (c *Config) Check(now time.Time) (warnings []Finding, err error) {
	warnings = []Finding{}
	var p problems
	for _, f := range c.inspect(now) {
		if f.Warning {
			warnings = append(warnings, f)
		} else {
			p = append(p, f.Text)
		}
	}
	if len(p) > 0 {
		return warnings, p
	}
	return warnings, nil
}

// inspect looks at what the settings name: certificates, tokens, directories, addresses. It starts
// nothing and asks no other machine, but opens each address for a moment.
func (c *Config) inspect(now time.Time) []Finding {
	in := inspection{c: c, now: now}
	for _, a := range c.Accesses() {
		in.certificate(a)
	}
	in.tokens()
	in.cluster()
	in.directories()
	in.addresses()
	return in.found
}

// inspection collects findings.
type inspection struct {
	c     *Config
	now   time.Time
	found []Finding
}

func (in *inspection) wrong(key string, err error) {
	if err != nil {
		in.found = append(in.found, Finding{Key: key, Text: err.Error()})
	}
}

func (in *inspection) warn(key, format string, args ...any) {
	in.found = append(in.found, Finding{Key: key, Warning: true, Text: fmt.Sprintf(format, args...)})
}

func (in *inspection) certificate(a *Access) {
	key := a.Key("tls_cert_file")
	loaded, err := a.TLS()
	switch {
	case err != nil:
		in.wrong(key, err)
	case loaded == nil:
	default:
		if err := a.CheckTimes(loaded, in.now); err != nil {
			in.wrong(key, err)
		} else if err := a.CheckTimes(loaded, in.now.Add(certificateSoon)); err != nil {
			in.warn(key, "%s %s: the certificate expires in less than %d days", key, a.TLSCertFile, int(certificateSoon/(24*time.Hour)))
		}
	}
}

// tokens reads the files with tokens and keys. A key set on another machine is not asked for.
func (in *inspection) tokens() {
	_, err := in.c.Exacta.Server()
	in.wrong(keyTokenFile, err)
	t := &in.c.Threads
	if t.KeySources() != 1 || t.JWKSURL != "" {
		return
	}
	v, err := token.New(token.Config{KeySetFile: t.JWKSFile, PublicKeyFile: t.PublicKeyFile, SecretFile: t.HS256SecretFile, Issuer: t.Issuer, RevocationFile: t.RevocationFile})
	if err != nil {
		in.wrong("threads", fmt.Errorf("cannot verify tokens of agent threads: %w", err))
		return
	}
	v.Close()
}

// cluster reads what a node proves itself with.
func (in *inspection) cluster() {
	l := &in.c.Cluster
	switch l.Mode {
	case ClusterEmbedded:
		in.certificate(l.access())
		n, err := in.c.ClusterNode()
		in.wrong("cluster", err)
		in.wrong("cluster.dir", named("cluster.dir", n.Dir, canMake(n.Dir)))
		in.address(keyClusterListen, l.ListenAddr)
	case ClusterNATS:
		_, err := in.c.ClusterServers(nil)
		in.wrong("cluster", err)
	}
}

func (in *inspection) directories() {
	c := in.c
	if c.Store.Mode != StoreMemory {
		in.wrong("store.dir", named("store.dir", c.Store.Dir, canMake(c.Store.Dir)))
	}
	there := func(key, dir string, warning bool) {
		if dir == "" {
			return
		}
		if err := named(key, dir, isDir(dir)); err != nil && warning {
			in.warn(key, "%v", err)
		} else {
			in.wrong(key, err)
		}
	}
	there("threads.supervisor_workdir", c.Threads.SupervisorWorkdir, false)
	for _, dir := range c.Exacta.AllowedRoots {
		there("exacta.allowed_roots", dir, true)
	}
	for _, dir := range c.Exacta.DiagnosticsDirs {
		there("exacta.diagnostics_dirs", dir, true)
	}
	if len(c.Toolhost.ListenAddr) == 0 {
		return
	}
	there("toolhost.root", c.Toolhost.Root, false)
	for _, name := range c.Toolhost.Plugins {
		if name != "builtin" {
			_, err := os.Stat(name)
			in.wrong("toolhost.plugins", named("toolhost.plugins", name, err))
		}
	}
}

// named adds the setting to what is wrong with a path.
func named(key, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot use %s = %q: %w", key, path, err)
}

func isDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return syscall.ENOTDIR
	}
	return nil
}

// canMake returns why a directory that a server makes, or writes in, cannot be used.
func canMake(dir string) error {
	for {
		err := isDir(dir)
		if err == nil {
			if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
				return fmt.Errorf("this user cannot write in %s: %w", dir, err)
			}
			return nil
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, os.ErrNotExist) || parent == dir {
			return err
		}
		dir = parent
	}
}

// addresses tries those that a server would listen on.
func (in *inspection) addresses() {
	c := in.c
	lists := []*Access{&c.Kernel.Access, &c.HTTP.Access, &c.Toolhost.Access, &c.Exacta.Access, c.Exacta.WS()}
	if c.Threads.KeySources() > 0 || c.dev {
		lists = append(lists, &c.Threads.Access, c.Threads.Lines())
	}
	for _, a := range lists {
		for _, addr := range a.ListenAddr {
			in.address(a.AddrKey(), addr)
		}
	}
	if c.Admin.ListenAddr != "" {
		in.address("admin.listen_addr", c.Admin.ListenAddr)
	}
}

func (in *inspection) address(key, addr string) {
	if path, ok := strings.CutPrefix(addr, unixPrefix); ok {
		in.socket(key, addr, path)
		return
	}
	ln, err := net.Listen("tcp", addr)
	switch {
	case err == nil:
		_ = ln.Close()
	case errors.Is(err, syscall.EADDRINUSE):
		in.warn(key, "%s: %s is in use", key, addr)
	case errors.Is(err, os.ErrPermission):
		in.warn(key, "%s: this user may not open %s", key, addr)
	default:
		in.wrong(key, fmt.Errorf("cannot open %s: %w", key, err))
	}
}

func (in *inspection) socket(key, addr, path string) {
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		_ = c.Close()
		in.warn(key, "%s: %s is in use", key, addr)
		return
	}
	dir := filepath.Dir(path)
	err := isDir(dir)
	if err == nil {
		err = unix.Access(dir, unix.W_OK|unix.X_OK)
	}
	in.wrong(key, named(key, addr, err))
}
