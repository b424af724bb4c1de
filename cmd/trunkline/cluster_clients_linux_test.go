package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/handlers/ipc/ipcclient"
)

// TestClusterWithoutMajority: one node of three acknowledges nothing and shows why. With a second
// one all goes on.
func TestClusterWithoutMajority(t *testing.T) {
	besideOthers(t)
	r := newClusterRig(t)
	book := &usageBook{procs: make(map[string]*usageRow)}
	left := r.owner(r.nodes...)
	c := &clusterClient{node: left, wait: time.Second}
	defer c.close()
	r.until("a process", func() bool { return book.create(c, "p") })
	r.until("an addition", func() bool { return book.add(c, "p") })
	lost := r.but(left)
	for _, n := range lost {
		n.kill()
	}
	r.until("the node that is left is not ready", func() bool {
		if book.add(c, "p") {
			t.Error("one node of three acknowledges a change")
		}
		return left.get("/readyz", nil) == http.StatusServiceUnavailable
	})
	r.until("the status has exit code 1", func() bool {
		cmd := program("cluster", "status", "--admin", left.admin)
		var talk bytes.Buffer
		cmd.Stderr = &talk
		err := cmd.Run()
		var exit *exec.ExitError
		return errors.As(err, &exit) && exit.ExitCode() == cli.CodeFailed && strings.Contains(talk.String(), "no majority")
	})
	if book.add(c, "p") {
		t.Error("one node of three acknowledges a change")
	}
	lost[0].start()
	r.ready(left, lost[0])
	r.until("an addition after the return", func() bool { return book.add(c, "p") })
	book.check(left)
	book.check(lost[0])
	lost[1].start()
	book.checkAll(r)
}

// TestClusterClients: clients that know of one address go on while the owner, which they never see,
// is killed, and another one ends in order.
func TestClusterClients(t *testing.T) {
	besideOthers(t)
	r := newClusterRig(t)
	owner := r.owner(r.nodes...)
	at := r.but(owner)[0]
	c := &clusterClient{node: at}
	defer c.close()
	c.surely("a process", func(ctx context.Context, conn *ipcclient.Conn) error {
		_, err := conn.CreateProcess(ctx, ipcclient.CreateProcess{PID: "p", UserID: "p"})
		return err
	})

	talk, events := newLines(), newLines()
	sub := program("sub", "--addr", at.kernel, "job.>")
	sub.Stdout, sub.Stderr = events, talk
	ended := startTied(t, sub)
	defer func() {
		_ = sub.Process.Kill()
		<-ended
	}()
	r.until("sub has subscribed", func() bool { return strings.Contains(talk.String(), "subscribed") })
	sees := func(event string) {
		t.Helper()
		r.until("the subscriber prints "+event, func() bool {
			_, err := c.do(func(ctx context.Context, conn *ipcclient.Conn) error {
				_, err := conn.Publish(ctx, ipcclient.Publish{EventType: "job." + event, Payload: "{}"})
				return err
			})
			return err == nil && strings.Contains(events.String(), "job."+event)
		})
	}
	sees("first")

	acked, unknown := 0, 0
	calls := func() { // one process for each, as a script has it
		t.Helper()
		for before := acked; acked < before+3; {
			cmd := program("call", "--addr", at.kernel, "kernel.RecordUsage", `{"pid":"p","llm_calls":1}`)
			out, err := cmd.CombinedOutput()
			switch code := cmd.ProcessState.ExitCode(); {
			case err == nil:
				acked++
			case code == cli.CodeUnavailable:
				unknown++
			default:
				t.Fatalf("exit code %d: %s", code, out)
			}
		}
	}
	calls()
	owner.kill()
	calls()
	sees("second")
	r.until("sub has noticed", func() bool { return strings.Contains(talk.String(), "reconnected") })
	owner.start()
	r.ready(r.nodes...)

	if next := r.owner(r.nodes...); next != at {
		next.terminate()
		calls()
		sees("third")
		next.start()
		r.ready(next)
	}
	c.surely("the counter", func(ctx context.Context, conn *ipcclient.Conn) error {
		p, err := conn.GetProcess(ctx, "p")
		if n := int(p.Usage.LLMCalls); err == nil && (n < acked || n > acked+unknown) {
			t.Errorf("the counter is %d after %d acknowledged and %d unknown", n, acked, unknown)
		}
		return err
	})
	t.Logf("%d acknowledged, %d unknown", acked, unknown)
}

// TestClusterPlannedEnd: nodes get SIGTERM and end in order. Others take over, and nothing is lost.
func TestClusterPlannedEnd(t *testing.T) {
	longBesideOthers(t)
	r := newClusterRig(t)
	book, load := newUsageLoad(r)
	defer load.end()
	for range 3 { // each node ends once, or one of them more often
		load.more(30)
		owner := r.owner(r.nodes...)
		owner.terminate()
		load.more(30)
		owner.start()
		r.ready(owner)
	}
	load.end()
	book.checkAll(r)
	r.but(r.owner(r.nodes...))[0].terminate()
}
