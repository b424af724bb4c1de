package journal

import "testing"

// instant is a store that takes everything and keeps nothing.
type instant struct{}

func (instant) WriteBlock(Index, []byte) error                      { return nil }
func (instant) Blocks(Index, func(Index, []byte) error) error       { return nil }
func (instant) DropBlocks(Index) error                              { return nil }
func (instant) CutBlocks(Index) error                               { return nil }
func (instant) Sync() error                                         { return nil }
func (instant) Close() error                                        { return nil }
func (instant) BeginSnapshot(uint64) (SnapshotWriter, error)        { return nil, nil }
func (instant) ListSnapshots() ([]Snapshot, error)                  { return nil, nil }
func (instant) ReadSnapshot(uint64, func(chunk []byte) error) error { return nil }
func (instant) DropSnapshot(uint64) error                           { return nil }

// openInstant opens a log on a store that takes no time.
func openInstant(t testing.TB, cfg Config) *Log {
	t.Helper()
	l, err := Open(instant{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Replay(0, nil); err != nil {
		t.Fatal(err)
	}
	return l
}
