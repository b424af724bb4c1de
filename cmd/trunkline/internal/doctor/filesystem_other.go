//go:build !linux

package doctor

import "os"

// syncData brings the content of a file to the disk.
func syncData(f *os.File) error { return f.Sync() }

// fileSystem returns "": the kind is not known here.
func fileSystem(string) string { return "" }
