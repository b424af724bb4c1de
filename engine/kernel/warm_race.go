//go:build race

package kernel

// warmed stands in for the view that Warm reads without locks, which race builds do without.
type warmed struct{}

func (*warmed) publish(*shard) {}

// warmedNodes stands in for the same of the scheduler's nodes.
type warmedNodes struct{}

func (*warmedNodes) publish([]*[nodeChunk]node) {}

// Warm does nothing in race builds.
func (k *Kernel) Warm([][]byte, Need) uint32 { return 0 }
