package journaltool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"trunkline/codec/jsonx"
	"trunkline/engine/journal"
)

// Range is which indexes to export, both included; To 0 means to the end.
type Range struct {
	From, To journal.Index
}

// Exported is what an export has written.
type Exported struct {
	Lines      uint64
	First      journal.Index // 0 if nothing was in the range
	Last       journal.Index
	Unreadable uint64 // lines with a record that is no change known here
	Damages    int    // places of which there is no line
	Damage     error  // the first of them
}

// errPast ends an export at the end of its range.
var errPast = errors.New("past the range")

// Export writes one JSON object per index and line to w, in order: index, time, epoch, kind, and
// the fields of the change, or error and base64 where it is none. A claim has a line too, so that a
// missing index is a missing record.
func Export(ctx context.Context, dir string, in Range, w io.Writer, m Meter) (done Exported, err error) {
	j, err := open(dir)
	if err != nil {
		return done, err
	}
	x := export{out: bufio.NewWriterSize(w, 64<<10), in: in, m: m}
	err = j.walk(ctx, nothing{}, max(in.From, 1), func(b *journal.BlockView) error { return x.block(b, j.last) }, x.lost)
	if damage := j.view.Damage(); damage != nil && err == nil && (in.To == 0 || in.To > x.done.Last) {
		damage.Index = max(damage.Index, j.last+1)
		x.note(damage)
	}
	if err == errPast {
		err = nil
	}
	if also := x.out.Flush(); err == nil && also != nil {
		err = fmt.Errorf("cannot write output: %w", also)
	}
	return x.done, errors.Join(err, j.Close())
}

type export struct {
	out    *bufio.Writer
	in     Range
	m      Meter
	base   journal.Index
	record record
	line   []byte
	done   Exported
}

// keepLine is how much of a buffer for lines is kept: more is for the rare record that is larger.
const keepLine = 1 << 20

func (x *export) block(b *journal.BlockView, last journal.Index) error {
	if x.in.To != 0 && b.First > x.in.To {
		return errPast
	}
	if x.base == 0 {
		x.base = max(b.First, x.in.From)
		if x.in.To != 0 {
			last = min(last, x.in.To)
		}
		x.m.Begin("export", "records", max(last, x.base)-x.base+1)
	}
	defer func() { x.m.Set(x.done.Last - min(x.base, x.done.Last) + 1) }()
	if b.Claim {
		return x.show(b, b.First, nil)
	}
	return b.Records(max(x.in.From, 1)-1, func(i journal.Index, rec []byte) error { return x.show(b, i, rec) })
}

func (x *export) show(b *journal.BlockView, i journal.Index, rec []byte) error {
	if i < x.in.From {
		return nil
	}
	if x.in.To != 0 && i > x.in.To {
		return errPast
	}
	o := appendUint(jsonx.Build(x.line[:0]), "index", i)
	o = appendUint(appendTime(o, "time", moment(b.Time)), "epoch", b.Epoch)
	if b.Claim {
		o = o.Text("kind", "claim")
	} else {
		var known bool
		if o, known = appendChange(o, &x.record, rec); !known {
			x.done.Unreadable++
		}
	}
	x.line = append(o.End(), '\n')
	if _, err := x.out.Write(x.line); err != nil {
		return fmt.Errorf("cannot write output: %w", err)
	}
	if cap(x.line) > keepLine {
		x.line = nil
	}
	if x.done.Lines++; x.done.First == 0 {
		x.done.First = i
	}
	x.done.Last = i
	return nil
}

func (x *export) lost(d journal.Damage) error {
	if x.in.To == 0 || d.Index <= x.in.To {
		x.note(&d.DamageError)
	}
	return nil
}

func (x *export) note(err error) {
	if x.done.Damages++; x.done.Damage == nil {
		x.done.Damage = err
	}
}

// nothing is a Meter for work that is reported elsewhere.
type nothing struct{}

// Begin implements Meter.
func (nothing) Begin(string, string, uint64) {}

// Set implements Meter.
func (nothing) Set(uint64) {}
