//go:build !linux

package selector

import "os"

// The limits need Linux; elsewhere the process runs without, which toolhost §4.8 allows as the best effort.

func restrict(int, *limits) {}

func signalCode(*os.ProcessState) int { return -1 }
