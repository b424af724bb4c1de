package idem

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"trunkline/codec/mpack"
)

// ChangeKind is what a Change does.
type ChangeKind uint8

// The kinds of change.
const (
	// ChangeStarted puts Key with Input in flight, for the Attempt-th time.
	ChangeStarted ChangeKind = iota + 1
	// ChangeFinished ends the execution of Key with Result.
	ChangeFinished
	// ChangeReleased ends the reservation Attempt of Key without an execution.
	ChangeReleased
	// ChangeDropped removes Key: expired, evicted, forgotten, or with a result that is not kept.
	ChangeDropped

	numChangeKinds
)

// String names the kind.
func (k ChangeKind) String() string {
	names := [numChangeKinds]string{ChangeStarted: "started", ChangeFinished: "finished", ChangeReleased: "released", ChangeDropped: "dropped"}
	if k > 0 && k < numChangeKinds {
		return names[k]
	}
	return "unknown"
}

// Change is one resolved effect on the state of a Table; its kind decides which fields count. It
// and its slices are lent: a journal encodes it before it returns.
type Change struct {
	Kind ChangeKind
	// At is the monotonic clock, in nanoseconds, of the request that made the change.
	At      int64
	Key     Key
	Attempt uint32 // from 1 to maxAttempt
	// Repeatable reports that what was started may be run twice.
	Repeatable bool
	Input      [32]byte
	Result     Stored // its Index does not count
}

// changeVersion is the version of the encodings; another one is refused.
const changeVersion = 1

// repeatableBit of an attempt that started means that it is repeatable. Programs that do not know
// it take it for a large number, and may run again what their manifest permits. maxAttempt is the
// greatest attempt.
const (
	repeatableBit = 1 << 31
	maxAttempt    = repeatableBit - 1
)

// hashWords is how many integers a hash is written as.
const hashWords = 4

// errBadChange means that bytes are no change, or no snapshot record, of a known version and kind.
var errBadChange = errors.New("cannot parse change")

// AppendChange appends the encoding of c (see the package comment). Texts must be UTF-8, as Finish
// makes them.
func AppendChange(dst []byte, c *Change) []byte {
	sizes := [numChangeKinds]int{ChangeStarted: 12, ChangeFinished: 17, ChangeReleased: 8, ChangeDropped: 7}
	dst = mpack.AppendArray(dst, sizes[c.Kind])
	dst = mpack.AppendUint(mpack.AppendUint(dst, changeVersion), uint64(c.Kind))
	dst = appendHash(mpack.AppendInt(dst, c.At), &c.Key.Hash)
	if c.Kind == ChangeDropped {
		return dst
	}
	attempt := uint64(c.Attempt)
	if c.Kind == ChangeStarted && c.Repeatable {
		attempt |= repeatableBit
	}
	dst = mpack.AppendUint(dst, attempt)
	if c.Kind == ChangeReleased {
		return dst
	}
	dst = appendHash(dst, &c.Input)
	if c.Kind == ChangeStarted {
		return dst
	}
	return appendResult(dst, &c.Result)
}

func appendResult(dst []byte, r *Stored) []byte {
	dst = mpack.AppendUint(dst, uint64(r.Status))
	dst = mpack.AppendStr(mpack.AppendStr(dst, r.Output), r.Error)
	if len(r.Dispatch) == 0 {
		dst = mpack.AppendNil(dst)
	} else {
		dst = mpack.AppendStr(dst, r.Dispatch)
	}
	if !r.HasToken {
		return mpack.AppendNil(dst)
	}
	return appendHash(mpack.AppendArray(dst, hashWords), &r.Token)
}

// appendHash appends h as integers: the profile of MessagePack here has no bytes that are not text.
func appendHash(dst []byte, h *[32]byte) []byte {
	for i := 0; i < len(h); i += 8 {
		dst = mpack.AppendUint(dst, binary.BigEndian.Uint64(h[i:]))
	}
	return dst
}

// ParseChange reads a change from b, which is all of it. The slices of c point into b.
func ParseChange(b []byte, c *Change) error {
	*c = Change{}
	d, err := openRecord(b)
	if err != nil {
		return err
	}
	c.Kind = ChangeKind(d.Int(0, int64(numChangeKinds)-1))
	c.At = d.Int(0, math.MaxInt64)
	d.hash(&c.Key.Hash)
	d.fields(c)
	if !d.Whole() {
		return fmt.Errorf("%w: %s record of %d bytes", errBadChange, c.Kind, len(b))
	}
	return nil
}

// changeReader takes the fields off a list.
type changeReader struct{ mpack.Tuple }

// openRecord checks b and reads the version.
func openRecord(b []byte) (changeReader, error) {
	t, p := mpack.OpenTuple(b)
	if p != mpack.NoProblem {
		return changeReader{}, fmt.Errorf("%w: %s", errBadChange, p.Text())
	}
	if v := t.Int(0, math.MaxInt64); v != changeVersion || t.Bad {
		return changeReader{}, fmt.Errorf("%w: version %d", errBadChange, v)
	}
	return changeReader{t}, nil
}

// uint is an integer that is not negative.
func (d *changeReader) uint() uint64 {
	v := mpack.ReadValue(d.Raw())
	d.Bad = d.Bad || v.Kind != mpack.BigUint && (v.Kind != mpack.Int || v.Int < 0)
	return uint64(v.Int)
}

func (d *changeReader) hash(h *[32]byte) {
	for i := 0; i < len(h); i += 8 {
		binary.BigEndian.PutUint64(h[i:], d.uint())
	}
}

func (d *changeReader) fields(c *Change) {
	switch c.Kind {
	case ChangeDropped:
		return
	case ChangeStarted, ChangeFinished, ChangeReleased:
		c.Attempt = uint32(d.Int(0, math.MaxUint32))
		c.Repeatable = c.Kind == ChangeStarted && c.Attempt > maxAttempt
		c.Attempt &= maxAttempt
	}
	if d.Bad = d.Bad || c.Attempt == 0; c.Kind == ChangeReleased {
		return
	}
	if d.hash(&c.Input); c.Kind == ChangeFinished {
		d.result(&c.Result)
	}
}

func (d *changeReader) result(r *Stored) {
	r.Status = uint8(d.Int(0, math.MaxUint8))
	r.Output, r.Error, r.Dispatch = d.Text(), string(d.Text()), d.Optional(mpack.Str).Data
	v := d.Optional(mpack.Array)
	if r.HasToken = v.Kind == mpack.Array; r.HasToken {
		token := changeReader{mpack.Tuple{List: mpack.OpenList(v.Data)}}
		token.hash(&r.Token)
		d.Bad = d.Bad || !token.Whole()
	}
}
