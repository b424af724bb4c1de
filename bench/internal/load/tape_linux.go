package load

import "bytes"

// Placeholder is the run of 12 bytes, as many as the last group of a UUID has, that is replaced
// with the tape's counter, in lower-case hexadecimal, each time its frame is sent: identifiers that
// must not repeat.
const Placeholder = "############"

// Tape is the endless, repeating list of requests of one connection of a closed loop, encoded
// beforehand, because on a small machine the generator shares the cores with the server. Its
// position survives a run, so that requests whose order matters (a process that goes READY,
// RUNNING, READY …) go on where the run before stopped. Only one connection may use a Tape at a
// time.
type Tape struct {
	Hello []byte // sent once on every new connection, before all frames; it is not answered, or what answers it is no reply

	data    []byte
	frames  []taped
	repeat  int // frames that repeat, once sealed; what lies behind them is a copy of the first ones
	next    int // the frame sent next
	counter uint64
}

// taped is one frame of a Tape.
type taped struct {
	from, to int   // in its data
	fresh    bool  // the counter goes up before it
	marks    []int // where placeholders stand, from its beginning on
}

// TapeOf is a tape of requests.
func TapeOf(requests ...[]byte) *Tape {
	t := new(Tape)
	for _, r := range requests {
		t.Add(r)
	}
	return t
}

// Add appends one frame to the tape.
func (t *Tape) Add(frame []byte) {
	var f taped
	for i := 0; ; i += len(Placeholder) {
		n := bytes.Index(frame[i:], []byte(Placeholder))
		if n < 0 {
			break
		}
		i += n
		f.marks = append(f.marks, i)
	}
	t.add(f, frame)
}

// AddFresh is Add for the frame that begins a new identifier: the counter goes up before it. Frames
// added with Add after it carry the same counter in their placeholders.
func (t *Tape) AddFresh(frame []byte) {
	t.Add(frame)
	t.frames[len(t.frames)-1].fresh = true
}

func (t *Tape) add(f taped, frame []byte) {
	f.from = len(t.data)
	t.data = append(t.data, frame...)
	f.to = len(t.data)
	t.frames = append(t.frames, f)
}

// Len returns the number of frames that repeat.
func (t *Tape) Len() int {
	if t.repeat > 0 {
		return t.repeat
	}
	return len(t.frames)
}

// seal repeats the first frames behind the last one, so that any depth frames in a row are one
// write.
func (t *Tape) seal(depth int) {
	t.repeat = t.Len()
	for len(t.frames) < t.repeat+depth {
		f := t.frames[len(t.frames)-t.repeat]
		t.add(f, t.data[f.from:f.to])
	}
}

// take returns the next n frames as one slice and moves on. n is at most the depth given to seal.
func (t *Tape) take(n int) []byte {
	frames := t.frames[t.next : t.next+n]
	for i := range frames {
		f := &frames[i]
		if f.fresh {
			t.counter++
		}
		for _, m := range f.marks {
			putHex(t.data[f.from+m:][:len(Placeholder)], t.counter)
		}
	}
	t.next = (t.next + n) % t.repeat
	return t.data[frames[0].from:frames[n-1].to]
}

// putHex writes a number in lower-case hexadecimal, with zeros in front.
func putHex(to []byte, n uint64) {
	for i := len(to) - 1; i >= 0; i-- {
		to[i] = "0123456789abcdef"[n&15]
		n >>= 4
	}
}
