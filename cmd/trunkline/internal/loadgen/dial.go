package loadgen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/codec/transcode"
	"trunkline/codec/wire"
	"trunkline/handlers/ipc/client"
)

// ErrConnect is the error of a server that is not reached, before anything was measured.
var ErrConnect = errors.New("cannot connect")

// Place splits the address of the target into what Dial takes.
func (t *Target) Place() (network, addr string, secure bool, err error) {
	if t.Protocol == ProtocolHTTP {
		return t.placeOfURL()
	}
	if path, ok := strings.CutPrefix(t.Addr, "unix://"); ok {
		if !strings.HasPrefix(path, "/") {
			return "", "", false, fmt.Errorf("cannot use address %q: want an absolute path, unix:///path", t.Addr)
		}
		return "unix", path, false, nil
	}
	if addr, secure = strings.CutPrefix(t.Addr, "tls://"); !secure {
		addr = strings.TrimPrefix(addr, "tcp://")
	}
	if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
		return "", "", false, fmt.Errorf("cannot use address %q: want host:port, tcp://host:port, tls://host:port or unix:///path", t.Addr)
	}
	return "tcp", addr, secure, nil
}

func (t *Target) placeOfURL() (network, addr string, secure bool, err error) {
	u, err := url.Parse(t.Addr)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil || strings.ContainsAny(u.Host, " \r\n") {
		return "", "", false, fmt.Errorf("cannot use address %q: want a URL like http://host:port%s", t.Addr, defaultPath)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return "tcp", net.JoinHostPort(u.Hostname(), port), u.Scheme == "https", nil
}

// dial connects once.
func (t *Target) dial(ctx context.Context) (net.Conn, error) {
	if t.Dial != nil {
		return t.Dial(ctx)
	}
	network, addr, secure, err := t.Place()
	if err != nil {
		return nil, err
	}
	return Dial(ctx, network, addr, secure, nil)
}

// Dial connects to addr of a network, with TLS if secure is set; cfg may be nil. The name that the
// certificate must have is the host of addr unless cfg names another.
func Dial(ctx context.Context, network, addr string, secure bool, cfg *tls.Config) (net.Conn, error) {
	if !secure {
		var d net.Dialer
		return d.DialContext(ctx, network, addr)
	}
	if cfg == nil {
		cfg = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	d := tls.Dialer{Config: cfg}
	return d.DialContext(ctx, network, addr)
}

// greet does what a connection needs before its first request: for toolhost lines, to authenticate
// (toolhost §6.2).
func (t *Target) greet(ctx context.Context, nc net.Conn) error {
	if t.Protocol != ProtocolToolhost || t.Token == "" {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := nc.SetDeadline(deadline); err != nil {
			return err
		}
	}
	line := jsonx.AppendString([]byte(`{"aid":"_auth","token":`), t.Token)
	if _, err := nc.Write(append(line, "}\n"...)); err != nil {
		return err
	}
	answer, err := readLine(nc)
	if err != nil {
		return err
	}
	var r reply
	if err := newLines().read(answer, &r); err != nil {
		return err
	}
	if !r.ok {
		return fmt.Errorf("the server refuses the token: %s", r.code)
	}
	return nc.SetDeadline(time.Time{})
}

// readLine reads one line and not a byte more: what follows belongs to the first request.
func readLine(nc net.Conn) ([]byte, error) {
	var line []byte
	for one := make([]byte, 1); len(line) < keptBuffer; {
		if _, err := nc.Read(one); err != nil {
			return nil, err
		}
		if one[0] == '\n' {
			return line, nil
		}
		line = append(line, one[0])
	}
	return nil, errTooLarge
}

// ErrPrepare is the error of processes that the mix works on and that are not created.
var ErrPrepare = errors.New("cannot create the processes of the run")

const (
	// callers is how many calls of preparing and cleaning up are in flight.
	callers = 64
	// prepareTime bounds creating the processes of a run, cleanUpTime terminating them.
	prepareTime = 30 * time.Second
	cleanUpTime = 30 * time.Second
	// callTime bounds one of those calls: a server that takes longer for a process is not there to
	// be measured.
	callTime = 5 * time.Second
)

// ampleQuota is above what any run uses, because a process beyond its quota costs the server an
// event per look at it.
const ampleQuota = `"quota":{"max_llm_calls":2147483647,"max_tool_calls":2147483647,"max_agent_hops":2147483647,` +
	`"max_input_tokens":2147483647,"max_output_tokens":2147483647}`

// prepare creates one process per connection, if a method asks for it. They are not scheduled: the
// workers of the server must not get them. Each has a user of its own, so that no rate limit is
// met.
func (g *generator) prepare(ctx context.Context) error {
	if !g.needsProcesses() {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, prepareTime)
	defer cancel()
	conn, err := g.caller(limited)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = callAll(limited, conn, "CreateProcess", int64(len(g.conns)), func(i int64) string {
		pid := g.pidOf(i)
		return `{"pid":"` + pid + `","user_id":"` + pid + `","schedule":false,` + ampleQuota + `}`
	}, func(err error) bool { return hasCode(err, wire.FailedPrecondition) })
	if err == nil {
		return nil
	}
	g.cleanUp(ctx, conn)
	return fmt.Errorf("%w: %w", ErrPrepare, err)
}

func (g *generator) needsProcesses() bool {
	return slices.ContainsFunc(g.messages, func(m *message) bool { return m.pid })
}

// pidOf is what {{pid}} means on a connection.
func (g *generator) pidOf(conn int64) string {
	return fmt.Sprintf("bench-%s-%0*d", g.identity(), connWidth, conn)
}

// cleanUp terminates the processes of the run and those that the built-in CreateProcess made. It
// does what it can: the server may be gone. After a failed preparation conn is the connection that
// created: requests of one connection take effect in the order sent, so those that were given up
// without a reply come before their end. It is nil otherwise.
func (g *generator) cleanUp(ctx context.Context, conn *client.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	share := g.creates()
	if share < 0 && !g.needsProcesses() {
		return
	}
	if conn == nil || conn.Err() != nil {
		var err error
		if conn, err = g.caller(ctx); err != nil {
			return
		}
		defer conn.Close()
	}
	gone := func(err error) bool { return hasCode(err, wire.NotFound) }
	terminate := func(pid string) string { return `{"pid":"` + pid + `","reason":"end of a measurement"}` }
	if g.needsProcesses() {
		_ = callAll(ctx, conn, "TerminateProcess", int64(len(g.conns)), func(i int64) string { return terminate(g.pidOf(i)) }, gone)
	}
	if share >= 0 {
		_ = callAll(ctx, conn, "TerminateProcess", g.sentUpTo(), func(k int64) string {
			if g.mix.pick(k) != share {
				return ""
			}
			return terminate(fmt.Sprintf("%s%s-%0*d", createdPrefix, g.identity(), seqWidth, k))
		}, gone)
	}
}

// creates is the share that creates processes with the built-in body; -1 if there is none.
func (g *generator) creates() int {
	return slices.IndexFunc(g.plan.Mix, func(s Share) bool {
		const name = "kernel.CreateProcess"
		return g.plan.Target.Protocol == ProtocolKernel && s.Name == name && string(s.Body) == kernelBodies[name]
	})
}

// sentUpTo is a number that no request sent has reached.
func (g *generator) sentUpTo() (k int64) {
	for _, c := range g.conns {
		if c.stamps > 0 {
			k = max(k, c.next)
		}
	}
	return k
}

// caller connects to the target for calls beside the load.
func (g *generator) caller(ctx context.Context) (*client.Conn, error) {
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	nc, err := g.plan.Target.dial(dialing)
	if err != nil {
		return nil, fmt.Errorf("%w to %s: %w", ErrConnect, g.plan.Target.Addr, err)
	}
	return client.New(nc), nil
}

// callAll makes n calls of a kernel method; an empty body leaves one out, fine reports whether an
// error does not matter. The first one that does ends it, and gives up the calls in flight: they
// may still take effect.
func callAll(ctx context.Context, conn *client.Conn, method string, n int64, body func(i int64) string, fine func(error) bool) error {
	return each(ctx, callers, n, func(ctx context.Context, i int64) error {
		err := call(ctx, conn, method, body(i))
		if err != nil && fine(err) {
			return nil
		}
		return err
	})
}

func call(ctx context.Context, conn *client.Conn, method, body string) error {
	if body == "" {
		return nil
	}
	packed, err := transcode.EncodeJSON([]byte(body))
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err = conn.Call(limited, "kernel", method, packed)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no reply to %s: %w", method, err)
	}
	return err
}

func hasCode(err error, code wire.Code) bool {
	var said *client.Error
	return errors.As(err, &said) && said.Code == code
}
