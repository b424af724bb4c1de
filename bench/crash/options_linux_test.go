package crash

import (
	"context"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"trunkline/bench/internal/load"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/rounds"
)

type options struct {
	server   string // empty: built
	mode     string
	out      string // folder of histories that no order explains; empty: the temporary one
	rounds   int    // 0: as many as a test has time for
	inARow   int    // rounds of a leg on one directory; a replay goes over all of them
	seed     uint64
	keep     bool
	disk     int64 // MiB that a directory may have before another is begun
	settings []string
	limit    time.Duration
}

// asked are the flags of the test binary.
var asked = flags(flag.CommandLine)

func flags(f *flag.FlagSet) *options {
	o := new(options)
	f.StringVar(&o.server, "server", "", "trunkline binary; empty builds ./cmd/trunkline")
	f.IntVar(&o.rounds, "rounds", 0, "rounds in all, of memory there are a few more; 0: what a test has time for")
	f.IntVar(&o.inARow, "in-a-row", 10, "rounds on one directory")
	f.StringVar(&o.mode, "mode", "all", "store.mode: always, interval, memory or all")
	f.StringVar(&o.out, "out", "", "folder for the pages of histories that no order explains; empty keeps them with the directories")
	f.Uint64Var(&o.seed, "seed", rand.Uint64(), "of the instants and requests; one is drawn unless it is given")
	f.BoolVar(&o.keep, "keep", false, "keep the directories, also when nothing was wrong")
	f.Int64Var(&o.disk, "disk", 1024, "MiB that a directory may have before another is begun")
	f.DurationVar(&o.limit, "time", time.Hour, "after which the rest is given up as failed")
	f.Func("set", "further setting of the server, key=value; may be repeated", func(kv string) error {
		o.settings = append(o.settings, kv)
		return nil
	})
	return o
}

// legs take turns. Of memory there is a round whenever its turn comes, beside those that were asked
// for.
func (o *options) legs() []leg {
	always, interval := leg{mode: "always"}, leg{mode: "interval"}
	oftenAlways, oftenInterval := leg{"always", true}, leg{"interval", true}
	switch o.mode {
	case "all":
		return []leg{{mode: "memory"}, always, oftenInterval, oftenAlways, interval}
	case "always":
		return []leg{always, oftenAlways}
	case "interval":
		return []leg{interval, oftenInterval}
	case "memory":
		return []leg{{mode: "memory"}}
	}
	return nil
}

// unknownShare is the part of the histories, one in so many, that may stay undecided.
const unknownShare = 50

// TestCrash plays rounds in each mode, until there were as many as asked for or one shows a fault.
func TestCrash(t *testing.T) {
	o := *asked
	if o.rounds == 0 {
		o.rounds, o.inARow = rounds.Of(0, 12), 3
	}
	if o.rounds == 0 {
		t.Skip("builds and kills servers")
	}
	if o.legs() == nil || o.rounds < 1 || o.inARow < 1 || o.disk < 1 || o.limit <= 0 {
		t.Fatal("cannot run with these flags: numbers are positive, -mode is always, interval, memory or all")
	}
	rig := newRig(t, o.server)
	defer func() {
		if o.keep || t.Failed() {
			t.Log("kept", rig.Dir)
			rig.StopAll()
			return
		}
		rig.Close()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), o.limit)
	defer cancel()
	t.Logf("seed %d, %d rounds", o.seed, o.rounds)
	total := &tally{}
	for number, left := 0, o.rounds; left > 0 && !t.Failed(); number++ {
		left -= o.turn(ctx, t, number, left, rig, total)
	}
	total.table().Print(t.Output())
	if n, of := total[historiesUnknown].Load(), total[historiesEvaluated].Load(); n*unknownShare > of {
		t.Errorf("%d of %d histories were not decided in time", n, of)
	}
	for c := range total {
		if optional := count(c) == historiesUnknown || count(c) == violations || count(c) >= endedBy; !optional && asked.rounds == 0 && total[c].Load() == 0 {
			t.Errorf("%s: none", countNames[c])
		}
	}
}

// newRig makes a folder for servers and finds their binary, or builds it.
func newRig(t *testing.T, server string) *load.Rig {
	rig, err := load.NewRig("", "trunkline-crash-")
	if err == nil && server != "" {
		err = rig.FindServer(server)
	}
	if err != nil {
		t.Fatal(err)
	}
	if server == "" {
		rig.Binary = kit.Program(t, rig.Dir)
	}
	return rig
}

// turn plays a leg's rounds in a row, of the left ones that are still to be played, and returns how
// many of those it played.
func (o *options) turn(ctx context.Context, t *testing.T, number, left int, rig *load.Rig, total *tally) (played int) {
	l := o.legs()[number%len(o.legs())]
	g := newGame(o, l, number, rig.Binary, rig.Dir)
	play, n := g.play, min(o.inARow, left)
	if l.mode == "memory" {
		play = g.playMemory
	}
	if played = n; l.mode == "memory" && o.mode != "memory" {
		played, n = 0, 1
	}
	faults, err := play(ctx, n)
	if err != nil {
		t.Error(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
	total.merge(&g.count)
	t.Logf("%4d rounds left after %d of %s", left-played, n, l)
	return played
}
