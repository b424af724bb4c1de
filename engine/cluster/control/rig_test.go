package control

import (
	"cmp"
	"log/slog"
	"testing"

	"trunkline/engine/cluster/node"
)

// nodeOf returns node id of a, b and c, which has not joined the others.
func nodeOf(t *testing.T, id string, cfg Config) *Node {
	cfg.ID, cfg.Replicas, cfg.Partitions, cfg.Logger = id, 3, cmp.Or(cfg.Partitions, 1), slog.New(slog.DiscardHandler)
	cfg.Embedded = &node.Config{Routes: []node.Route{{Node: "a"}, {Node: "b"}, {Node: "c"}}}
	n := New(cfg)
	t.Cleanup(func() { _ = n.Shutdown(t.Context()) })
	return n
}
