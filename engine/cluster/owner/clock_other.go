//go:build !linux

package owner

import "trunkline/engine/connection"

// Now reads the clock of leases, in nanoseconds. It may stop while the machine sleeps. It does not
// allocate.
func Now() int64 { return connection.Mono() }
