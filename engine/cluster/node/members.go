package node

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/time/rate"
)

// members admits the routes of the nodes of the list, one process for each. The library would take
// any other node in as one more voter, for good: the others need a larger majority from then on,
// whether it runs or not. A second process with the id of a node would vote, and acknowledge, for
// the first one.
type members struct {
	cfg *Config
	log *rate.Limiter // of refusals
}

// refusalsEvery is how often a refusal is logged: a node that was refused tries again.
const refusalsEvery = 10 * time.Second

// Check implements server.Authentication. A node of a former version does not name itself.
func (m *members) Check(c server.ClientAuthentication) bool {
	node, start := c.GetOpts().Username, c.GetOpts().Name
	if node == "" {
		return true
	}
	why := "it is not of the list of routes"
	if i := slices.IndexFunc(m.cfg.Routes, func(r Route) bool { return r.Node == node }); i >= 0 {
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		defer cancel()
		g, err := greet(ctx, m.cfg.Routes[i].Addr, m.cfg.TLS)
		if err != nil || g.ID == start {
			return true
		}
		why = "another process answers at the address of the node: two nodes with one id would vote twice"
	}
	if m.log.Allow() {
		m.cfg.Logger.Error("refusing a node", "node", node, "addr", c.RemoteAddress().String(), "err", why)
	}
	return false
}

// nodes lists the ids of the list.
func (cfg *Config) nodes() string {
	ids := make([]string, len(cfg.Routes))
	for i, r := range cfg.Routes {
		ids[i] = r.Node
	}
	slices.Sort(ids)
	return strings.Join(ids, ",")
}
