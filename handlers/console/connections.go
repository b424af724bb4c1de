package console

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"trunkline/engine/obs"
)

// connectionSorts are the orders of connections. All but the first begin with the largest.
var connectionSorts = []string{"opened", "age", "idle", "in", "out", "unsent", "in_flight", "streams"}

// sizeOrders are the names that obs.ConnectionOrders has for two of them.
var sizeOrders = map[string]string{"in": "bytes_in", "out": "bytes_out"}

// connectionsView is a page of connections.
type connectionsView struct {
	Connections []obs.Connection `json:"connections"`
	Total       int              `json:"total"`
	Matching    int              `json:"matching"`
	Protocol    string           `json:"-"`
	Protocols   []string         `json:"-"`
	Sort        string           `json:"-"`
	Sorts       []string         `json:"-"`
	Limit       int              `json:"-"`
	Dropped     string           `json:"-"` // the one that was dropped last; empty: none was
}

func loadConnections(c *Console, _ *http.Request, q *query) (any, error) {
	limit, order := q.rows(), q.oneOf("sort", connectionSorts)
	list := c.cfg.Source.Connections()
	v := &connectionsView{Total: len(list), Protocol: q.text("protocol"), Sort: cmp.Or(order, connectionSorts[0]), Sorts: connectionSorts, Limit: limit}
	if id := q.text("dropped"); !slices.ContainsFunc(list, func(c obs.Connection) bool { return c.ID == id }) {
		v.Dropped = id
	}
	for i := range list {
		if !slices.Contains(v.Protocols, list[i].Protocol) {
			v.Protocols = append(v.Protocols, list[i].Protocol)
		}
	}
	slices.Sort(v.Protocols)
	list = slices.DeleteFunc(list, func(c obs.Connection) bool { return v.Protocol != "" && c.Protocol != v.Protocol })
	slices.SortStableFunc(list, func(a, b obs.Connection) int {
		if v.Sort == connectionSorts[0] {
			return cmp.Or(a.Opened.Compare(b.Opened), strings.Compare(a.ID, b.ID))
		}
		return obs.ConnectionOrders[cmp.Or(sizeOrders[v.Sort], v.Sort)](&a, &b)
	})
	v.Matching = len(list)
	v.Connections = list[:min(len(list), limit)]
	return v, nil
}

// connectionView is one connection.
type connectionView struct {
	obs.Connection
	CanDrop bool `json:"-"`
}

func loadConnection(c *Console, _ *http.Request, q *query) (any, error) {
	id, list := q.text("id"), c.cfg.Source.Connections()
	i := slices.IndexFunc(list, func(c obs.Connection) bool { return c.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("%w: connection %q is not open", obs.ErrNotFound, id)
	}
	return &connectionView{list[i], c.cfg.Source.Drop != nil}, nil
}
