package main

import (
	"fmt"
	"path/filepath"
	"time"

	"trunkline/bench/internal/load"
)

// profile reports where the server's time goes in a table: for each method it takes a CPU profile
// under the load that was measured, keeps it in the folder that was asked for and prints the
// functions at the top. It does nothing if none was. A profile takes five windows, and a second at
// least, which is the least that the server profiles for.
func (b *bench) profile(f *filled, loads map[string]load.Config) error {
	if b.o.profile == "" {
		return nil
	}
	for _, method := range rowMethods() {
		path := filepath.Join(b.o.profile, fmt.Sprintf("%s-%s.pprof", method, count(f.rows)))
		top, err := f.Profile(loads[method], b.o.warmup, max(time.Second, 5*b.o.window), path)
		if err != nil {
			return fmt.Errorf("cannot profile %s: %w", method, err)
		}
		fmt.Printf("\nprofile of %s, %s, %d connections, %d in flight: %s\n%s", method, f.name(), conns, depth, path, top)
	}
	return nil
}
