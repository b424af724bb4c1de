package crash

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/wire"
	"trunkline/handlers/ipc/ipcclient"
)

// picture is every reply that shows what is kept, by request.
type picture map[string][]byte

// pictured reads all that is kept while nothing changes it.
func (g *game) pictured(ctx context.Context) (picture, error) {
	c, err := ipcclient.Dial(ctx, g.addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	p := make(picture)
	ask := func(service, method string, body []byte, name string) error {
		raw, err := c.Call(ctx, service, method, body)
		if refused(err, wire.NotFound) {
			raw, err = []byte(err.Error()), nil
		}
		p[method+" "+name] = raw
		return err
	}
	if err := ask("kernel", "GetQuotaDefaults", nil, ""); err != nil {
		return nil, err
	}
	if err := ask("kernel", "GetProcessCounts", nil, ""); err != nil {
		return nil, err
	}
	if err := p.processes(ctx, c); err != nil {
		return nil, err
	}
	for _, a := range g.actors {
		if err := ask("kernel", "CheckQuota", keyed("pid", a.is.pid), a.is.pid); err != nil {
			return nil, err
		}
		for _, pid := range a.pictured() {
			if err := ask("orchestration", "GetSessionState", keyed("process_id", pid), pid); err != nil {
				return nil, err
			}
			if err := ask("orchestration", "GetNextInstruction", keyed("process_id", pid), pid); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// pictured lists the actor's process and the last few it is done with.
func (a *actor) pictured() []string {
	pids := []string{a.is.pid}
	for i := max(len(a.past)-5, 0); i < len(a.past); i++ {
		pids = append(pids, a.past[i].pid)
	}
	return pids
}

// processes puts the pages of all processes into p.
func (p picture) processes(ctx context.Context, c *ipcclient.Conn) error {
	in := ipcclient.ListProcesses{Limit: 1000}
	for n := 0; ; n++ {
		body, err := in.MarshalMsg(nil)
		if err != nil {
			return err
		}
		raw, err := c.Call(ctx, "kernel", "ListProcesses", body)
		if err != nil {
			return err
		}
		p[fmt.Sprintf("ListProcesses page %d", n)] = raw
		var page ipcclient.ProcessPage
		if _, err := page.UnmarshalMsg(raw); err != nil {
			return fmt.Errorf("cannot read a page of processes: %w", err)
		}
		if in.Cursor = page.NextCursor; in.Cursor == nil {
			return nil
		}
	}
}

// compare looks for replies that differ.
func (g *game) compare(before, after picture) {
	for name, was := range before {
		if is, ok := after[name]; !ok || !bytes.Equal(is, was) {
			g.fault("%s was\n%s\nand is after the restart\n%s", name, readable(was), readable(is))
		}
	}
	if len(before) != len(after) {
		g.fault("%d replies before and %d after the restart", len(before), len(after))
	}
}

func readable(raw []byte) string {
	if v, rest, err := msgp.ReadIntfBytes(raw); err == nil && len(rest) == 0 {
		return fmt.Sprintf("%.2000s", fmt.Sprint(v))
	}
	return string(raw)
}
