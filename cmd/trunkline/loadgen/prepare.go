package loadgen

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"trunkline/codec/transcode"
	"trunkline/codec/wire"
	"trunkline/handlers/ipc/ipcclient"
)

// ErrPrepare is the error of processes, threads or projects that the mix works on and that are not
// created.
var ErrPrepare = errors.New("cannot create what the run works on")

const (
	// callers is how many calls of preparing and cleaning up are in flight.
	callers = 64
	// prepareTime bounds creating the processes or threads of a run, cleanUpTime ending them.
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

// prepare creates what methods of the mix ask for: the threads of the connections, a project, or
// one process per connection. Processes are not scheduled: the workers of the server must not get
// them. Each has a user of its own, so that no rate limit is met.
func (g *generator) prepare(ctx context.Context) (err error) {
	if !g.needsOwn() {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, prepareTime)
	defer cancel()
	var conn *ipcclient.Conn
	switch g.plan.Target.Protocol {
	case ProtocolThreads:
		err = g.createThreads(limited)
	case ProtocolExacta:
		err = g.openProject(limited)
	default:
		if conn, err = g.caller(limited); err != nil {
			return err
		}
		defer conn.Close()
		err = callAll(limited, conn, "CreateProcess", int64(len(g.conns)), func(i int64) string {
			pid := g.pidOf(i)
			return `{"pid":"` + pid + `","user_id":"` + pid + `","schedule":false,` + ampleQuota + `}`
		}, wire.FailedPrecondition)
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrPrepare, err)
		}
	}
	if err != nil {
		g.cleanUp(ctx, conn)
	}
	return err
}

func (g *generator) needsOwn() bool {
	return slices.ContainsFunc(g.messages, func(m *message) bool { return m.owned })
}

// pidOf is what {{pid}} means on a connection.
func (g *generator) pidOf(conn int64) string {
	return fmt.Sprintf("bench-%s-%0*d", g.run, connWidth, conn)
}

// cleanUp closes the threads or the project of the run, or terminates its processes and those that
// the built-in CreateProcess made. It does what it can: the server may be gone. After a failed
// preparation conn is the connection that created: requests of one connection take effect in the
// order sent, so those that were given up without a reply come before their end. It is nil
// otherwise.
func (g *generator) cleanUp(ctx context.Context, conn *ipcclient.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	switch g.plan.Target.Protocol {
	case ProtocolThreads:
		g.closeThreads(ctx)
		return
	case ProtocolExacta:
		g.closeProject(ctx)
		return
	}
	share := slices.IndexFunc(g.plan.Mix, func(s Share) bool { // that creates processes with the built-in body
		const name = "kernel.CreateProcess"
		return g.plan.Target.Protocol == ProtocolKernel && s.Name == name && string(s.Body) == kernelBodies[name]
	})
	if share < 0 && !g.needsOwn() {
		return
	}
	if conn == nil || conn.Err() != nil {
		var err error
		if conn, err = g.caller(ctx); err != nil {
			return
		}
		defer conn.Close()
	}
	terminate := func(pid string) string { return `{"pid":"` + pid + `","reason":"end of a measurement"}` }
	if g.needsOwn() {
		_ = callAll(ctx, conn, "TerminateProcess", int64(len(g.conns)), func(i int64) string { return terminate(g.pidOf(i)) }, wire.NotFound)
	}
	if share >= 0 {
		end := int64(0) // a number that no request sent has reached
		for _, c := range g.conns {
			if c.stamps > 0 {
				end = max(end, c.next)
			}
		}
		_ = callAll(ctx, conn, "TerminateProcess", end, func(k int64) string {
			if g.mix.pick(k) != share {
				return ""
			}
			return terminate(fmt.Sprintf("%s%s-%0*d", createdPrefix, g.run, seqWidth, k))
		}, wire.NotFound)
	}
}

// caller connects to the target for calls beside the load.
func (g *generator) caller(ctx context.Context) (*ipcclient.Conn, error) {
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	nc, err := g.plan.Target.dial(dialing)
	if err != nil {
		return nil, fmt.Errorf("%w to %s: %w", ErrConnect, g.plan.Target.Addr, err)
	}
	return ipcclient.New(nc), nil
}

// callAll makes n calls of a kernel method; an empty body leaves one out, and errors of one code
// do not matter. The first other one ends it, and gives up the calls in flight: they may still take
// effect.
func callAll(ctx context.Context, conn *ipcclient.Conn, method string, n int64, body func(i int64) string, fine wire.Code) error {
	return each(ctx, callers, n, func(ctx context.Context, i int64) error {
		text := body(i)
		if text == "" {
			return nil
		}
		packed, err := transcode.EncodeJSON([]byte(text))
		if err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		_, err = conn.Call(limited, "kernel", method, packed)
		said := (*ipcclient.Error)(nil)
		switch {
		case errors.As(err, &said) && said.Code == fine:
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("no reply to %s: %w", method, err)
		}
		return err
	})
}
