package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"trunkline/bench/internal/load"
)

// profile reports where the server's time goes in mode always, 1024 requests in flight: it keeps
// CPU profiles of RecordUsage and prints the functions at the top.
func (b *bench) profile() error {
	dir := b.newStore()
	defer os.RemoveAll(dir)
	s, err := b.trunkline(always, dir)
	if err != nil {
		return err
	}
	if err := prepare(s.Addr, b.o.rows); err != nil {
		return err
	}
	for _, at := range thousand() {
		path := filepath.Join(b.o.profile, fmt.Sprintf("%s-%dx%d.pprof", recordUsage, at.conns, at.depth))
		cfg := b.config(s.Addr, load.Kernel, tapesOf(recordUsage, span{0, b.o.rows}, at.conns, nil), at.depth)
		top, err := s.Profile(cfg, b.o.warmup, 3*time.Second, path)
		if err != nil {
			return fmt.Errorf("cannot profile %d×%d: %w", at.conns, at.depth, err)
		}
		fmt.Printf("\nprofile of %s, mode always, %d connections, %d in flight: %s\n%s", recordUsage, at.conns, at.depth, path, top)
	}
	return nil
}
