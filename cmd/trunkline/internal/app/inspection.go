package app

import (
	"errors"
	"fmt"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
)

// exactly completes an error of a store that did not open with the file, where one can be named: a
// torn log shows only to who looks at all of it.
func (s *storage) exactly(err error) {
	var damage *journal.DamageError
	if !errors.As(err, &damage) || damage.Index == 0 {
		return
	}
	s.inspect(func(v *embedded.View, _ *journal.Inspector) error {
		if found := v.Damage(); found != nil {
			damage.Where = found.Where
		}
		return nil
	})
}

var errSeen = errors.New("seen")

// checkRecoverTo refuses an index in the middle of a block, before the store is opened: once it was
// opened with a loss accepted, what is behind the damage is gone.
func (s *storage) checkRecoverTo() error {
	to := s.recoverTo
	if to == 0 {
		return nil
	}
	var first, last journal.Index
	s.inspect(func(_ *embedded.View, in *journal.Inspector) error {
		return in.Blocks(to, func(b *journal.BlockView) error {
			first, last = b.First, b.Last
			return errSeen
		}, func(journal.Damage) error { return errSeen })
	})
	if first <= to && to < last {
		return fmt.Errorf("cannot recover to index %d: it is inside of a block; the ends of blocks around it are %d and %d", to, first-1, last)
	}
	return nil
}

// inspect shows f what is in the directory, if it can be read: the opening reports better what is
// wrong with it.
func (s *storage) inspect(f func(*embedded.View, *journal.Inspector) error) {
	v, err := embedded.Inspect(embedded.Config{Dir: s.cfg.Dir})
	if err == nil {
		_ = f(v, journal.NewInspector(v, 0, v.Mode()))
		_ = v.Close()
	}
}
