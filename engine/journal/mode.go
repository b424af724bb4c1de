package journal

import "fmt"

// Mode is what an acknowledged record has survived. It is fixed when a store is made.
type Mode uint8

// The modes. The zero value is the safest.
const (
	// Always acknowledges a record when its block is synced. A power loss loses no acknowledged
	// record.
	Always Mode = iota
	// Interval acknowledges a record when its block was handed to the operating system. The death
	// of the process loses nothing. A power loss loses at most what was acknowledged since the last
	// sync: on a good disk in one second, on any disk in two.
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
