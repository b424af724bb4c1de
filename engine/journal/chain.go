package journal

// Chain verifies blocks that come one after the other, as Replay does, without a store: a node
// checks with it what it keeps. It is for one goroutine.
type Chain struct{ inspection }

// NewChain returns one for the blocks of a partition and mode, from the one that holds an index on.
// 0 is the beginning of the log.
func NewChain(partition uint32, mode Mode, from Index) *Chain {
	c := &Chain{}
	c.walk.log = &Log{cfg: Config{Partition: partition, Mode: mode}}
	c.want = max(from, 1)
	return c
}

// Next verifies the block that a store has at index first. The view is lent until the next call,
// and as long as b is. The first block must hold the index that the Chain begins at, and needs only
// its checksum, unless it is the first of the log. What does not follow is a *DamageError.
func (c *Chain) Next(first Index, b []byte) (*BlockView, error) {
	if first > c.want {
		return nil, hole(c.want)
	}
	d, err := c.log.decode(first, b)
	if err == nil {
		if err = c.follows(&d); err != nil {
			err = &DamageError{Where: place(first), Index: c.want, Err: err}
		}
	}
	if err != nil {
		return nil, err
	}
	c.take(&d, len(b))
	return &c.shown, nil
}
