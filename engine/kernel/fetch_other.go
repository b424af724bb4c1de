//go:build !amd64 && !arm64

package kernel

import "unsafe"

func fetchLine(unsafe.Pointer) {}

func fetchRow(*row, *byte, bool) {}
