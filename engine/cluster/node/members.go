package node

import (
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// members admits the routes of the nodes of the list. The library would take any other node in as
// one more voter, for good: the others need a larger majority from then on, whether it runs or not.
type members struct{ cfg *Config }

// Check implements server.Authentication. A node of a former version does not name itself.
func (m members) Check(c server.ClientAuthentication) bool {
	node := c.GetOpts().Username
	if node == "" || m.cfg.has(node) {
		return true
	}
	m.cfg.Logger.Error("refusing a node that is not of the list of routes", "node", node, "addr", c.RemoteAddress().String())
	return false
}

// has reports whether a node is of the list.
func (cfg *Config) has(node string) bool {
	return slices.ContainsFunc(cfg.Routes, func(r Route) bool { return r.Node == node })
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
