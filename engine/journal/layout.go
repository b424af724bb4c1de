package journal

import (
	"fmt"
	"strconv"
	"strings"
)

// LayoutError means that a directory was made by another version of the program, with files that
// are laid out in another way. It is no damage: the version that made it reads it.
type LayoutError struct {
	// Where names the directory.
	Where string
	// What is what differs: "layout", or "format" for that of the database below it.
	What string
	// Found is the number in the directory, Known that of this version.
	Found, Known uint64
}

// Error implements error.
func (e *LayoutError) Error() string {
	return fmt.Sprintf("cannot open journal %s: made by another version: it has %s %d, and this version knows %s %d", e.Where, e.What, e.Found, e.What, e.Known)
}

// Newer reports whether a later version made the directory.
func (e *LayoutError) Newer() bool { return e.Found > e.Known }

// Advice returns what to do about it.
func (e *LayoutError) Advice() string {
	made := "an earlier"
	if e.Newer() {
		made = "a later"
	}
	return made + " version of trunkline made this store: start that version, or carry the store over: 'trunkline store export' with that version, 'trunkline store import' with this one"
}

// CheckLayout reads the stamp of a directory: a first line of magic and the layout, and behind it,
// among others, a line of "format " and the format of the database. It returns a *LayoutError where
// one of the two numbers is another one than this version's, and nil for everything else, a stamp
// that is torn or none included. A later layout may have other lines.
func CheckLayout(where, magic, stamp string, layout, format uint64) error {
	for i, rest := 0, stamp; ; i++ {
		line, next, whole := strings.Cut(rest, "\n")
		if !whole {
			return nil
		}
		e := &LayoutError{Where: where, What: "layout", Known: layout}
		if i > 0 {
			e.What, e.Known, magic = "format", format, "format "
		}
		number, ok := strings.CutPrefix(line, magic)
		n, err := strconv.ParseUint(number, 10, 32)
		switch e.Found = n; {
		case i == 0 && (!ok || err != nil):
			return nil
		case ok && err == nil && e.Found != e.Known:
			return e
		}
		rest = next
	}
}
