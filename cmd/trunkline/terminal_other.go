//go:build !unix

package main

import "os"

// terminalSize is how many characters a line of the terminal has, and how many lines there are,
// which is not known here.
func terminalSize(*os.File) (columns, rows int) { return 80, 24 }
