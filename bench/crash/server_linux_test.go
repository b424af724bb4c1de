package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"trunkline/bench/internal/load"
	"trunkline/handlers/ipc/ipcclient"
)

// command is how the server is started: so that nothing is evicted, and no lease ends by itself.
func (g *game) command() load.Command {
	settings := []string{"store.mode=" + g.leg.mode, "store.dir=" + g.dir, "kernel.loops=2", "kernel.dequeue_lease_secs=3600",
		"kernel.max_sessions=1000000", "kernel.max_envelopes=1000000"}
	if g.leg.frequent {
		settings = append(settings, "store.snapshot_bytes=4096")
	}
	if g.addr != "" {
		settings = append(settings, "kernel.listen_addr="+g.addr)
	}
	c := load.Trunkline(g.binary, append(settings, g.o.settings...)...)
	if g.rng.IntN(2) == 0 {
		c.Env = append(c.Env, oneProcessor)
	}
	return c
}

// start starts the server where the first one listened. Any program may have got that port
// meanwhile, for a moment.
func (g *game) start() error {
	for try := 1; ; try++ {
		s, err := load.StartServer(g.command())
		if err == nil {
			g.server, g.addr = s, s.Addr
			return g.awaitReady()
		}
		if try == portTries || !strings.Contains(err.Error(), "address already in use") {
			return err
		}
		time.Sleep(time.Second)
	}
}

const portTries = 5

// readyTime bounds a recovery.
const readyTime = 30 * time.Second

// awaitReady waits for the first answer: a server listens before it has recovered.
func (g *game) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	for {
		err := g.answers(ctx)
		if err == nil {
			return nil
		}
		if !g.server.Alive() || ctx.Err() != nil {
			return fmt.Errorf("the server does not come up: %w; its output:\n%s", err, g.server.Output())
		}
		time.Sleep(time.Millisecond)
	}
}

// answers asks for something that every server has.
func (g *game) answers(ctx context.Context) error {
	c, err := ipcclient.Dial(ctx, g.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.GetQuotaDefaults(ctx)
	return err
}

// end ends the server in a way and waits until it is gone.
func (g *game) end(how ending) error {
	if !g.server.Alive() {
		return errors.New("the server ended by itself")
	}
	defer func() { g.count.add(snapshots, int64(strings.Count(g.server.Output(), "snapshot written"))) }()
	if how == stopped || how == stoppedIdle {
		g.server.Stop()
		return nil
	}
	if err := g.server.Kill(); err != nil {
		return err
	}
	if how == killedTwice {
		return g.interrupt(time.Duration(g.rng.Int64N(int64(60 * time.Millisecond))))
	}
	return nil
}

// interrupt starts a server and kills it after a while, whether it has recovered by then or not.
func (g *game) interrupt(after time.Duration) error {
	c := g.command()
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env = append(os.Environ(), c.Env...)
	if err := load.StartPinned(cmd, nil); err != nil {
		return fmt.Errorf("cannot start the server: %w", err)
	}
	time.Sleep(after)
	if err := cmd.Process.Kill(); err != nil {
		return fmt.Errorf("cannot kill the server: %w", err)
	}
	_ = cmd.Wait() // reports that it was killed
	g.count.add(restarts, 1)
	return nil
}
