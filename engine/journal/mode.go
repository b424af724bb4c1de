package journal

import "fmt"

// Mode says what an acknowledged record has survived. It is fixed when a store is made.
type Mode uint8

// The modes. The zero value is the safest.
const (
	// Always: a record is acknowledged when its block is synced to the disk. A power loss loses nothing that was acknowledged.
	Always Mode = iota
	// Interval: a record is acknowledged when its block was handed to the operating system. The death of the process loses nothing;
	// a power loss loses at most what was acknowledged since the last sync: on a good disk in one second, on any disk in two.
	Interval
	// Memory: nothing is written; a restart starts empty.
	Memory
)

// String returns the name of m as it is in the settings (store.mode).
func (m Mode) String() string {
	switch m {
	case Always:
		return "always"
	case Interval:
		return "interval"
	case Memory:
		return "memory"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// ParseMode is the inverse of String.
func ParseMode(s string) (Mode, error) {
	for m := Always; m <= Memory; m++ {
		if s == m.String() {
			return m, nil
		}
	}
	return 0, fmt.Errorf("cannot parse journal mode: %q (have always, interval, memory)", s)
}
