package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"trunkline/engine/obs"
)

// TestOrders has who may give orders to a cluster, and what they are.
func TestOrders(t *testing.T) {
	var got []ClusterOrder
	r := newRig(t, withTokens, func(c *Config) {
		c.Source.Order = func(_ context.Context, o ClusterOrder) error {
			switch o.Node {
			case "gone":
				return fmt.Errorf("%w: node %q", obs.ErrNotFound, o.Node)
			case "drained":
				return fmt.Errorf("%w: node %q is drained", obs.ErrRefused, o.Node)
			}
			got = append(got, o)
			return nil
		}
	})
	post := func(verb string, pairs ...string) *http.Request {
		v := url.Values{"reason": {"why"}}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return request("POST", root+"cluster/"+verb, v)
	}
	f := func(q *http.Request, status int, text string) {
		t.Helper()
		before := len(got)
		want(t, r.do(q), status, text)
		if done := len(got) > before; done != (status == 200) {
			t.Errorf("%d: an order was carried out: %v", status, done)
		}
	}
	long := strings.Repeat("n", maxText)
	f(post("move", "partition", "1", "node", "n2"), 401, "a token is needed")
	f(bearer(post("move", "partition", "1", "node", "n2"), viewToken), 403, "may not change")
	f(with(post("move", "partition", "1", "node", "n2"), r.logIn(opToken)), 403, "secret of the form")
	f(bearer(post("move", "partition", "one", "node", "n2"), opToken), 400, "partition must be a number")
	f(bearer(post("move", "node", "n2"), opToken), 400, "a move has")
	f(bearer(post("move", "partition", "1"), opToken), 400, "a move has")
	f(bearer(post("drain", "node", long+"n"), opToken), 400, "at most 1024 bytes")
	f(bearer(post("drain", "reason", long+"n"), opToken), 400, "at most 1024 bytes")
	f(bearer(post("move", "partition", "1", "node", "gone"), opToken), 404, "not found")
	f(bearer(post("drain", "node", "drained"), opToken), 409, "is drained")
	f(bearer(post("stop"), opToken), 404, "")
	f(bearer(request("GET", root+"cluster/move", nil), opToken), 405, "")

	f(bearer(post("move", "partition", "1", "node", "n2"), opToken), 200, `{"ok":true}`)
	f(bearer(post("drain", "node", long, "reason", long), opToken), 200, "")
	f(bearer(post("drain"), opToken), 200, "")
	f(bearer(post("resume", "node", "n1"), opToken), 200, "")
	f(bearer(post("rebalance"), opToken), 200, "")
	orders := []ClusterOrder{{"move", 1, "n2"}, {"drain", 0, long}, {"drain", 0, ""}, {"resume", 0, "n1"}, {"rebalance", 0, ""}}
	if fmt.Sprint(got) != fmt.Sprint(orders) {
		t.Errorf("%v", got)
	}
	for _, line := range []string{`msg="console change" action=cluster_move partition=1 node=n2 reason=why by=operator`,
		`msg="console change failed" action=cluster_drain partition="" node=drained reason=why by=operator`} {
		if !strings.Contains(r.log.String(), line) {
			t.Errorf("no line %q in the log:\n%s", line, r.log)
		}
	}
}
