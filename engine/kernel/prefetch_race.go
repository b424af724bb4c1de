//go:build race

package kernel

// warmed stands in for the view that Ahead reads without locks, which race builds do without.
type warmed struct{}

func (*warmed) publish(*shard) {}

// warmedNodes stands in for the same of the scheduler's nodes.
type warmedNodes struct{}

func (*warmedNodes) publish([]*[nodeChunk]node) {}

// Ahead does nothing in race builds.
type Ahead struct{}

func (*Ahead) row() (*shard, *row) { return nil, nil }

// Begin, Row, Node and Neighbours are the steps.
func (*Ahead) Begin(*Kernel, []byte) {}

// Row does nothing.
func (*Ahead) Row(Need) {}

// Node does nothing.
func (*Ahead) Node(*Kernel) {}

// Neighbours does nothing.
func (*Ahead) Neighbours(*Kernel) {}
