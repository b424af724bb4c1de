package main

import (
	"fmt"
	"path/filepath"
	"time"

	"trunkline/bench/internal/load"
)

// profile reports where the server's time goes: for each hot method it takes a CPU profile of the
// server under the pipelined load, keeps it in dir and prints the functions at the top.
func (f *field) profile(dir string) error {
	for _, method := range methods {
		path := filepath.Join(dir, method+".pprof")
		cfg := f.config(f.trunk.Addr, load.Kernel, f.tapes[method], f.o.depth)
		top, err := f.trunk.Profile(cfg, f.o.warmup, 2*time.Second, path)
		if err != nil {
			return fmt.Errorf("cannot profile %s: %w", method, err)
		}
		fmt.Printf("\nprofile of %s, %d connections, %d in flight: %s\n%s", method, f.o.conns, f.o.depth, path, top)
	}
	return nil
}
