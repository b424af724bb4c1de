package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/load"
)

// TestCrash plays a few rounds in each mode; a server that keeps nothing shows that the judges see a loss.
func TestCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and kills servers")
	}
	temp := t.TempDir()
	path, err := load.FindBinary("", "trunkline/cmd/trunkline", temp)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	play := func(mode string, rounds int) []string {
		t.Helper()
		o := options{seed: uint64(time.Now().UnixNano()), disk: 1 << 30}
		faults, err := newGame(o, mode, path, temp).play(ctx, rounds, func(line string) { t.Log(line) })
		if err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		return faults
	}
	for _, mode := range []string{"always", "interval"} {
		for _, f := range play(mode, 3) {
			t.Errorf("%s: %s", mode, f)
		}
	}
	if faults := play("memory", 1); len(faults) < maxFaults {
		t.Errorf("a server without a store passed: %v", faults)
	}
}

func TestFlags(t *testing.T) {
	f := func(line string, ok bool, modes ...string) {
		t.Helper()
		o, err := parseFlags(strings.Fields(line))
		if (err == nil) != ok || ok && (strings.Join(o.modes(), " ") != strings.Join(modes, " ") || o.seed == 0) {
			t.Errorf("%q: %+v, %v", line, o, err)
		}
	}
	f("", true, "always", "interval")
	f("-mode always -rounds 3 -seed 9 -keep", true, "always")
	f("-mode interval", true, "interval")
	f("-mode memory", false)
	f("-rounds 0", false)
	f("-disk 0", false)
	f("more", false)
}
