package doctor

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/obs"
	"trunkline/handlers/ops"
)

// askWithin is how long the admin listener of a server may take for its answers.
const askWithin = 2 * time.Second

const keyAdmin = "admin.listen_addr"

// admin is what the admin listener of the settings answered.
type admin struct {
	addr  string // "" if it was not asked
	why   string // it was not asked
	err   error  // it did not answer, or is none of a trunkline
	build obs.Build
	ready ops.Ready
	alive ops.Health
	store ops.Store
}

var errStranger = errors.New("what answers there is no trunkline")

// askAdmin asks the admin listener of the settings, if it has an address before it starts.
func (s *subject) askAdmin(ctx context.Context) (a admin) {
	addr := s.cfg.Admin.ListenAddr
	switch {
	case addr == "":
		a.why = keyAdmin + " is empty"
		return a
	case strings.HasSuffix(addr, ":0"):
		a.why = "the port of " + keyAdmin + " is chosen at the start"
		return a
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	a.addr = addr
	if a.err = s.Ask(ctx, addr, "/version", &a.build); a.err != nil {
		return a
	}
	if a.build.Version == "" || a.build.Go == "" {
		a.err = errStranger
		return a
	}
	a.err = errors.Join(s.Ask(ctx, addr, "/healthz", &a.alive), s.Ask(ctx, addr, "/readyz", &a.ready), s.Ask(ctx, addr, "/store", &a.store))
	return a
}

// runs reports whether a server with these settings answers.
func (a *admin) runs() bool { return a.addr != "" && a.err == nil }

// runningServer looks at what the server itself reports.
func runningServer(_ context.Context, s *subject) []Finding {
	a := &s.admin
	switch {
	case a.addr == "":
		return []Finding{skip(keyAdmin, "no server is asked: %s", a.why)}
	case errors.Is(a.err, errStranger):
		return []Finding{warn(a.addr, "name another "+keyAdmin, "%v", a.err)}
	case a.err != nil:
		first, _, _ := strings.Cut(a.err.Error(), "\n")
		return []Finding{skip(a.addr, "no server answers: %s", first)}
	}
	found := []Finding{a.health()}
	if a.build.Version != s.Build.Version || a.build.Revision != s.Build.Revision {
		found = append(found, warn(a.addr, "start the server again with this program, or use the other one here",
			"the server is version %s (%s), this program is %s (%s)", a.build.Version, a.build.Revision, s.Build.Version, s.Build.Revision))
	}
	if mode := s.cfg.Store.Mode; a.store.Mode != "" && a.store.Mode != mode {
		found = append(found, warn(a.addr, "name the settings of the server with --config and --set",
			"the server runs with store.mode=%s, these settings have %s", a.store.Mode, mode))
	}
	for _, w := range a.store.Warnings {
		found = append(found, fail(a.addr, "'trunkline status' shows the store; docs/operations.md has what each warning needs", "the store reports %s", w))
	}
	return found
}

// health is whether the server is alive and ready.
func (a *admin) health() Finding {
	switch {
	case !a.alive.Alive:
		return fail(a.addr, "look at its log, and start it again", "trunkline %s is not alive: %s", a.build.Version, a.alive.Error)
	case !a.ready.Ready:
		return warn(a.addr, "'trunkline status' shows how far it is", "trunkline %s is not ready: %s", a.build.Version, strings.Join(a.ready.Reasons, ", "))
	}
	if standby := a.store.Cluster.Standby(); standby != "" {
		return ok(a.addr, "trunkline %s is alive and ready; %s", a.build.Version, standby)
	}
	return ok(a.addr, "trunkline %s is alive and ready", a.build.Version)
}

// listeners tries each address that a server would open.
func listeners(ctx context.Context, s *subject) []Finding {
	c := s.cfg
	lists := []*config.Access{&c.Kernel.Access, &c.HTTP.Access, &c.Toolhost.Access, &c.Exacta.Access, c.Exacta.WS()}
	if c.Threads.KeySources() > 0 || c.Dev() {
		lists = append(lists, &c.Threads.Access, c.Threads.Lines())
	}
	if c.Cluster.On() {
		lists = append(lists, c.Cluster.Access())
	}
	var found []Finding
	for _, a := range lists {
		for _, addr := range a.ListenAddr {
			found = append(found, s.listener(ctx, a.AddrKey(), addr))
		}
	}
	if c.Admin.ListenAddr != "" {
		found = append(found, s.listener(ctx, keyAdmin, c.Admin.ListenAddr))
	}
	return found
}

// listener tries one address.
func (s *subject) listener(ctx context.Context, key, addr string) Finding {
	if path, found := strings.CutPrefix(addr, "unix://"); found {
		return s.socket(ctx, key, addr, path)
	}
	if strings.HasSuffix(addr, ":0") {
		return ok(key, "%s: the port is chosen at the start", addr)
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	switch {
	case err == nil:
		_ = ln.Close()
		return ok(key, "%s is free", addr)
	case errors.Is(err, syscall.EADDRINUSE):
		return s.inUse(key, addr)
	case errors.Is(err, fs.ErrPermission):
		return s.unsure(key, "use a port from 1024 on, or give the program CAP_NET_BIND_SERVICE", "this user may not open %s", addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fail(key, "'ip address' lists the addresses of this machine", "%s is no address of this machine", addr)
	}
	return fail(key, "correct the address", "cannot open %s: %v", addr, err)
}

// inUse is the finding of an address that is taken.
func (s *subject) inUse(key, addr string) Finding {
	if s.admin.runs() {
		return ok(key, "%s is in use, and trunkline %s answers on %s", addr, s.admin.build.Version, s.admin.addr)
	}
	const fix = "'ss -ltnpx' shows which program has it; stop that one, or name another address"
	if s.offline {
		return s.unsure(key, fix, "%s is in use", addr)
	}
	return fail(key, fix, "%s is in use, and no trunkline answers on %s", addr, keyAdmin)
}

// unsure is a failure that is only a warning where the server is not asked.
func (s *subject) unsure(key, fix, format string, args ...any) Finding {
	f := fail(key, fix, format, args...)
	if s.offline {
		f.Result = Warning
	}
	return f
}

// socket tries the path of a unix socket. One that a server left behind is no obstacle.
func (s *subject) socket(ctx context.Context, key, addr, path string) Finding {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		_ = c.Close()
		return s.inUse(key, addr)
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode()&os.ModeSocket == 0 {
		return fail(key, "name another path, or remove the file", "%s is there and no socket", path)
	}
	dir := filepath.Dir(path)
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fail(key, "make the directory, as one that the user of the server can write in", "no socket can be made in %s: %v", dir, err)
	}
	return ok(key, "%s is free", addr)
}
