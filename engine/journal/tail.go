package journal

import (
	"errors"
	"fmt"
	"math"
)

// errStop ends a walk over blocks early.
var errStop = errors.New("stop")

// firstBlock calls f with the first block that Blocks gives for index from.
func (l *Log) firstBlock(from Index, f func(first Index, b []byte) error) error {
	var failed error
	err := l.store.Blocks(from, func(first Index, b []byte) error {
		failed = f(first, b)
		return errStop
	})
	if err == errStop {
		return failed
	}
	return l.readError(from, err)
}

// lastBlock is an index that is in the last block, or behind it.
const lastBlock = Index(math.MaxUint64)

// readError names the place of an error that the store gave for blocks from an index on.
func (l *Log) readError(from Index, err error) error {
	if err == nil {
		return nil
	}
	if damage := (*DamageError)(nil); errors.As(err, &damage) {
		return err
	}
	if from == lastBlock {
		return fmt.Errorf("cannot read the end of the journal: %w", err)
	}
	return fmt.Errorf("cannot read journal from index %d: %w", from, err)
}

// findTail reads the last block, or the one that RecoverTo names, and notes what to cut behind it.
func (l *Log) findTail() error {
	torn, err := l.tornBlock()
	switch to := l.cfg.RecoverTo; {
	case err != nil:
		return err
	case to != 0 && (torn == 0 || to < torn):
		return l.findRecovered()
	case torn != 0:
		return l.findBefore(torn)
	}
	return l.firstBlock(lastBlock, l.setTail)
}

// tornBlock returns the first index of a torn last block; 0 if there is none. Only a Tearing store
// has one.
func (l *Log) tornBlock() (Index, error) {
	torn := Index(0)
	if t, ok := l.store.(Tearing); !ok || !t.MayTear() {
		return 0, nil
	}
	err := l.firstBlock(lastBlock, func(first Index, b []byte) error {
		if _, err := decodeBlock(b); err != nil {
			torn = first
		}
		return nil
	})
	return torn, err
}

// findBefore takes the block before a torn one for the last.
func (l *Log) findBefore(torn Index) error {
	l.cfg.Logger.Warn("journal ends in a torn block, which was never acknowledged", "index", torn)
	l.tail.cut = torn
	if torn <= 1 {
		return nil
	}
	return l.firstBlock(torn-1, func(first Index, b []byte) error {
		if first >= torn {
			return hole(torn - 1)
		}
		if err := l.setTail(first, b); err != nil {
			return err
		}
		if l.tail.last != torn-1 {
			return hole(l.tail.last + 1)
		}
		return nil
	})
}

// findRecovered takes the block that ends at RecoverTo, or the last one before it, for the last.
func (l *Log) findRecovered() error {
	to := l.cfg.RecoverTo
	return l.firstBlock(to, func(first Index, b []byte) error {
		if first > to {
			return hole(to)
		}
		if err := l.setTail(first, b); err != nil {
			return err
		}
		if last := l.tail.last; last > to {
			return fmt.Errorf("cannot recover to index %d: it is inside of a block; the ends of blocks around it are %d and %d", to, first-1, last)
		}
		l.tail.cut = l.tail.last + 1
		l.cfg.Logger.Warn("journal is recovered: what follows is given up", "index", l.tail.last)
		return nil
	})
}

// setTail takes a block for the last.
func (l *Log) setTail(first Index, b []byte) error {
	d, err := l.decode(first, b)
	if err != nil {
		return err
	}
	l.tail.last, l.tail.epoch, l.tail.chain = d.last(), d.epoch, d.chain
	l.time.Store(d.time)
	return nil
}

// decode reads the block that the store has at index first, and checks that it is of this log.
func (l *Log) decode(first Index, b []byte) (block, error) {
	d, err := decodeBlock(b)
	switch {
	case err != nil:
		return block{}, &DamageError{Where: place(first), Index: first, Err: err}
	case d.first != first:
		return block{}, &DamageError{Where: place(first), Index: first, Err: fmt.Errorf("it says that it starts at index %d", d.first)}
	case d.partition != l.cfg.Partition:
		return block{}, fmt.Errorf("cannot open journal as partition %d: it is of partition %d", l.cfg.Partition, d.partition)
	case d.mode != l.cfg.Mode:
		return block{}, &ErrModeMismatch{Made: d.mode, Asked: l.cfg.Mode}
	}
	return d, nil
}

func place(first Index) string { return fmt.Sprintf("block at %d", first) }

// hole returns the damage of a record that is not there.
func hole(i Index) error {
	return &DamageError{Where: place(i), Index: i, Err: errors.New("it is missing")}
}
