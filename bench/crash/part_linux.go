package crash

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"trunkline/bench/internal/part"
)

type options struct {
	mode     string
	out      string // folder of histories that no order explains; empty: the temporary one
	seed     uint64
	keep     bool
	disk     int64 // MiB that a directory may have before another is begun
	settings []string
	limit    time.Duration
}

// Part kills the server under load, again and again, and looks what is left.
func Part() part.Part {
	var o options
	return part.Part{
		Name: "crash", What: "SIGKILL under load, again and again: is there what replies confirmed?",
		Defaults: func(p *part.Options) { p.Rounds = 200 },
		Quick:    func(p *part.Options) { p.Rounds = 10 },
		Flags:    o.flags,
		Run:      func(r *part.Run) error { return o.run(r) },
	}
}

func (o *options) flags(f *flag.FlagSet) {
	*o = options{}
	f.StringVar(&o.mode, "mode", "all", "crash: store.mode: always, interval, memory or all; of memory there are a few rounds more")
	f.StringVar(&o.out, "out", "", "crash: folder for the pages of histories that no order explains; empty keeps them with the directories")
	f.Uint64Var(&o.seed, "seed", rand.Uint64(), "crash: of the instants and requests; one is drawn unless it is given")
	f.BoolVar(&o.keep, "keep", false, "crash: keep the directories, also when nothing was wrong")
	f.Int64Var(&o.disk, "disk", 1024, "crash: MiB that a directory may have before another is begun")
	f.DurationVar(&o.limit, "time", time.Hour, "crash: after which the rest is given up as failed")
	f.Func("set", "crash: further setting of the server, key=value; may be repeated", func(kv string) error {
		o.settings = append(o.settings, kv)
		return nil
	})
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

// inARow is how many rounds a leg has on one directory; a replay goes over all of them.
const inARow = 10

// run plays the legs in turn until there were as many rounds as asked for, or one shows a fault.
func (o *options) run(r *part.Run) (err error) {
	if o.legs() == nil || o.disk < 1 || o.limit <= 0 {
		return errors.New("cannot run with these flags: -disk and -time are positive, -mode is always, interval, memory or all")
	}
	r.Report.Checked = true
	ctx, cancel := context.WithTimeout(context.Background(), o.limit)
	defer cancel()
	r.Report.Note("seed %d", o.seed)
	total := &tally{}
	defer func() {
		r.Report.Table(total.table())
		r.Keep = o.keep || len(r.Report.Faults) > 0 || err != nil
	}()
	for number, left := 0, r.Options.Rounds; left > 0 && len(r.Report.Faults) == 0; number++ {
		l := o.legs()[number%len(o.legs())]
		played, err := o.turn(ctx, l, number, left, r, total)
		if err != nil {
			return err
		}
		left -= played
		fmt.Fprintf(os.Stderr, "%4d rounds left after %d of %s\n", left, played, l)
	}
	if n, of := total[historiesUnknown].Load(), total[historiesEvaluated].Load(); n*unknownShare > of {
		r.Report.Fault("%d of %d histories were not decided in time", n, of)
	}
	return nil
}

// turn plays a leg's rounds in a row, of the left ones that are still to be played, and returns how
// many of those it played.
func (o *options) turn(ctx context.Context, l leg, number, left int, r *part.Run, total *tally) (played int, err error) {
	g := newGame(o, l, number, r.Binary, r.Rig.Dir)
	play, n := g.play, min(inARow, left)
	if l.mode == "memory" {
		play = g.playMemory
	}
	if played = n; l.mode == "memory" && o.mode != "memory" {
		played, n = 0, 1
	}
	faults, err := play(ctx, n)
	for _, f := range faults {
		r.Report.Fault("%s", f)
	}
	total.merge(&g.count)
	return played, err
}
