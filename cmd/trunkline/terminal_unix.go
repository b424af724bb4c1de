//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalSize is how many characters a line of the terminal has, and how many lines there are; 80
// and 24 if they are unknown.
func terminalSize(f *os.File) (columns, rows int) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return 80, 24
	}
	return int(size.Col), int(size.Row)
}
