package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"trunkline/bench/internal/load"
)

// profile reports where the server's time goes in the parts that were measured.
func (b *bench) profile() error {
	if slices.Contains(b.o.parts, partThreads) {
		if err := b.profileThreads(); err != nil {
			return err
		}
	}
	if slices.Equal(b.o.parts, []string{partThreads}) {
		return nil
	}
	return b.profileKernel()
}

// profileThreads keeps CPU profiles of agent threads over lines, and prints the functions at the
// top.
func (b *bench) profileThreads() error {
	t := &talk{bench: b}
	defer b.StopAll()
	if err := t.start(); err != nil {
		return err
	}
	for _, c := range t.overLines() {
		if err := b.profileCell(t.threads, c.cfg, "threads-"+c.short, c.method, c.at); err != nil {
			return err
		}
	}
	return nil
}

// profileCell keeps the CPU profile of one cell.
func (b *bench) profileCell(s *load.Server, cfg load.Config, file, method string, at size) error {
	path := filepath.Join(b.o.profile, fmt.Sprintf("%s-%dx%d.pprof", file, at.conns, at.depth))
	top, err := s.Profile(cfg, b.o.warmup, 3*time.Second, path)
	if err != nil {
		return fmt.Errorf("cannot profile %s, %d×%d: %w", method, at.conns, at.depth, err)
	}
	fmt.Printf("\nprofile of %s, mode always, %d connections, %d in flight: %s\n%s", method, at.conns, at.depth, path, top)
	return nil
}

// profileKernel does so in mode always of the kernel protocol, 1024 requests in flight: it keeps
// CPU profiles of RecordUsage.
func (b *bench) profileKernel() error {
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
		cfg := b.config(s.Addr, load.Kernel, tapesOf(recordUsage, span{0, b.o.rows}, at.conns, nil), at.depth)
		if err := b.profileCell(s, cfg, recordUsage, recordUsage, at); err != nil {
			return err
		}
	}
	return nil
}
