package load

import "bytes"

// Placeholder is the run of 16 bytes that a fresh frame replaces with the tape's counter, in
// lower-case hexadecimal, each time it is sent: identifiers that must not repeat.
const Placeholder = "################"

// ShortPlaceholder is a run of 12 such bytes, the last group of a UUID.
const ShortPlaceholder = "############"

// mark is where a placeholder stands.
type mark struct{ at, width int }

// Tape is the endless, repeating list of requests of one connection of a closed loop, encoded
// beforehand, because on a small machine the generator shares the cores with the server. Its
// position survives a run, so that requests whose order matters (a process that goes READY,
// RUNNING, READY …) go on where the run before stopped. Only one connection may use a Tape at a
// time.
type Tape struct {
	Hello []byte // sent once on every new connection, before all frames; it is not answered, or what answers it is no reply

	data   []byte
	starts []int // offset of each frame; one more entry for the end
	tags   []uint8
	marks  [][]mark // placeholders in data, per frame
	fresh  []bool   // the counter goes up before this frame

	frames  int // frames that repeat; what lies behind them is a copy of the first ones
	next    int // the frame sent next
	reply   int // the frame whose reply comes next
	counter uint64
}

// Add appends one frame to the tape. tag lets the reply's owner know which request it was.
func (t *Tape) Add(tag uint8, frame []byte) { t.add(tag, frame, false) }

// AddFresh is Add for the frame that begins a new identifier: the counter goes up before it. Frames
// added with Add after it carry the same counter in their placeholders.
func (t *Tape) AddFresh(tag uint8, frame []byte) { t.add(tag, frame, true) }

func (t *Tape) add(tag uint8, frame []byte, fresh bool) {
	if len(t.starts) == 0 {
		t.starts = append(t.starts, 0)
	}
	var marks []mark
	for i := 0; ; {
		n := bytes.Index(frame[i:], []byte(ShortPlaceholder))
		if n < 0 {
			break
		}
		i += n
		width := len(ShortPlaceholder)
		if bytes.HasPrefix(frame[i:], []byte(Placeholder)) {
			width = len(Placeholder)
		}
		marks = append(marks, mark{len(t.data) + i, width})
		i += width
	}
	t.data = append(t.data, frame...)
	t.starts = append(t.starts, len(t.data))
	t.tags = append(t.tags, tag)
	t.marks = append(t.marks, marks)
	t.fresh = append(t.fresh, fresh)
}

// Len returns the number of frames that repeat.
func (t *Tape) Len() int {
	if t.frames > 0 {
		return t.frames
	}
	return len(t.tags)
}

// seal repeats the first frames behind the last one, so that any depth frames in a row are one
// write.
func (t *Tape) seal(depth int) {
	if t.frames == 0 {
		t.frames = len(t.tags)
	}
	for i := len(t.tags) - t.frames; len(t.tags) < t.frames+depth; i++ {
		t.add(t.tags[i], t.data[t.starts[i]:t.starts[i+1]], t.fresh[i])
		t.marks[len(t.marks)-1] = t.shifted(i)
	}
}

// shifted returns the placeholders of frame i moved to its copy at the end. They may have been
// overwritten by now, so they cannot be searched for again.
func (t *Tape) shifted(i int) []mark {
	move := t.starts[len(t.starts)-2] - t.starts[i]
	var out []mark
	for _, m := range t.marks[i] {
		out = append(out, mark{m.at + move, m.width})
	}
	return out
}

// take returns the next n frames as one slice and moves on. n is at most the depth given to seal.
func (t *Tape) take(n int) []byte {
	for i := t.next; i < t.next+n; i++ {
		if t.fresh[i] {
			t.counter++
		}
		for _, m := range t.marks[i] {
			putHex(t.data[m.at:m.at+m.width], t.counter)
		}
	}
	b := t.data[t.starts[t.next]:t.starts[t.next+n]]
	t.next = (t.next + n) % t.frames
	return b
}

// answered moves past n replies and returns the tag of the first.
func (t *Tape) answered(n int) uint8 {
	tag := t.tags[t.reply]
	t.reply = (t.reply + n) % t.frames
	return tag
}

// putHex writes a number in lower-case hexadecimal, with zeros in front.
func putHex(to []byte, n uint64) {
	for i := len(to) - 1; i >= 0; i-- {
		to[i] = "0123456789abcdef"[n&15]
		n >>= 4
	}
}
