package journal_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"trunkline/fuzz/kit/memstore"
	"trunkline/fuzz/rounds"
)

func TestTearing(t *testing.T) {
	for _, interval := range []bool{false, true} {
		rapid.Check(t, func(rt *rapid.T) {
			o := memstore.Options{Seed: rapid.Uint64().Draw(rt, "seed"), Interval: interval, Tear: true}
			runProgram(rt, on(o), rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(rt, "program"))
		})
	}
}

// stopped is what a watcher panics with, as a test would end.
type stopped string

// watcher fails without failing the test.
type watcher struct{}

func (watcher) Helper() {}

func (watcher) Fatalf(format string, args ...any) { panic(stopped(fmt.Sprintf(format, args...))) }

// finds reports whether runProgram finds fault with a place.
func finds(p Place, program []byte) (found bool) {
	defer func() {
		_, found = recover().(stopped)
	}()
	runProgram(watcher{}, p, program)
	return false
}

// TestLiesAreFound: a disk that acknowledges without syncing does not pass.
func TestLiesAreFound(t *testing.T) {
	program := bytes.Repeat([]byte{30 << 3, 3, 7}, 10)
	if finds(on(memstore.Options{Seed: 3}), program) {
		t.Error("found fault with a good disk")
	}
	if !finds(on(memstore.Options{Seed: 3, Lie: true}), program) {
		t.Error("found no fault with a disk that lies")
	}
}

// TestManySeeds runs random programs on disks of every kind.
func TestManySeeds(t *testing.T) {
	seeds := rounds.Pick(12, rounds.Of(30, 40))
	if raceEnabled {
		seeds = 30
	}
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 0))
		program := make([]byte, r.IntN(120))
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		runProgram(t, on(memstore.Options{Seed: seed, Interval: seed&1 != 0, Tear: seed&2 != 0}), program)
	}
}

func FuzzLog(f *testing.F) {
	f.Add(uint64(1), []byte{0x50, 3, 4, 0x50, 7, 5})
	f.Add(uint64(2), []byte{0x50, 4, 0x58, 4, 0x51, 4, 6, 0xfa, 7, 7})
	f.Add(uint64(3), bytes.Repeat([]byte{0xf8, 0xfa, 4, 7}, 8))
	f.Fuzz(func(t *testing.T, seed uint64, program []byte) {
		if len(program) > 200 {
			return
		}
		runProgram(t, on(memstore.Options{Seed: seed, Interval: seed&1 != 0, Tear: seed&2 != 0}), program)
	})
}
