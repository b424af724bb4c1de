package ipc

import (
	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/connection"
	"trunkline/engine/kernel"
)

// readAhead is how many frames are read before the first of them is executed. Meanwhile the memory
// comes that the table look-ups of the others need.
const readAhead = 8

// How many frames before its turn each step of a frame's kernel.Ahead is made: a step needs what
// the one before it has fetched, and each frame in between takes some 100 ns.
const (
	rowAhead        = 6
	nodeAhead       = 4
	neighboursAhead = 2
)

// reading is how far the input was read. Frames are counted from the first one of the turn; frame n
// is in slot n%readAhead until it is executed.
type reading struct {
	slots [readAhead]slot
	next  int                // the frame to execute
	read  int                // frames read
	at    int                // bytes read
	done  bool               // no frame is read any more
	stop  connection.Verdict // why
	busy  bool               // reading, not executing

	rows, nodes, neighbours int  // up to which frame the steps were made
	queue                   bool // a frame needs more than its row

	head   mpack.Head // of the latest request that was found by its names
	method *method    // whose it was
}

// slot is one frame that was read ahead.
type slot struct {
	typ     frame.Type
	payload []byte
	size    int     // of the whole frame
	method  *method // nil: validate checks the frame
	problem mpack.Problem
	keyed   bool // ahead was begun
	req     mpack.Request
	fields  [maxFields]mpack.Value
	ahead   kernel.Ahead
}

func (r *reading) begin() {
	r.next, r.read, r.at, r.done, r.busy = 0, 0, 0, false, false
	r.rows, r.nodes, r.neighbours, r.queue = 0, 0, 0, false
}

// nextFrame reads ahead and returns the frame to execute, nil if there is none.
func (t *turn) nextFrame(in []byte) *slot {
	r := &t.reading
	r.busy = true
	for !r.done && r.read < r.next+readAhead {
		t.readFrame(in)
	}
	for ; r.rows < min(r.read, r.next+rowAhead); r.rows++ {
		if sl := &r.slots[r.rows%readAhead]; sl.keyed {
			sl.ahead.Row(sl.method.need)
		}
	}
	if r.queue {
		r.fetchQueue(t.svc.kernel)
	}
	r.busy = false
	if r.next == r.read {
		return nil
	}
	return &r.slots[r.next%readAhead]
}

// fetchQueue makes the steps that few methods need.
func (r *reading) fetchQueue(k *kernel.Kernel) {
	for ; r.nodes < min(r.read, r.next+nodeAhead); r.nodes++ {
		if sl := &r.slots[r.nodes%readAhead]; sl.keyed && sl.method.need&kernel.NeedQueue != 0 {
			sl.ahead.Node(k)
		}
	}
	for ; r.neighbours < min(r.read, r.next+neighboursAhead); r.neighbours++ {
		if sl := &r.slots[r.neighbours%readAhead]; sl.keyed && sl.method.need&kernel.NeedQueue != 0 {
			sl.ahead.Neighbours(k)
		}
	}
}

// readFrame reads one frame into its slot, or ends the reading of this turn.
func (t *turn) readFrame(in []byte) {
	cfg, r := &t.svc.cfg, &t.reading
	sl := &r.slots[r.read%readAhead]
	if sl.typ, sl.payload, sl.size = frame.Split(in[r.at:], t.svc.maxFrame); sl.size <= 0 {
		r.done, r.stop = true, connection.More
		if sl.size == frame.Malformed {
			r.stop = connection.Close
		}
		return
	}
	if r.at >= cfg.TurnBytes || r.read >= cfg.FramesPerTurn {
		r.done, r.stop = true, connection.Yield
		return
	}
	r.at += sl.size
	r.read++
	sl.method = t.parseFast(sl)
	pid := &sl.fields[0]
	sl.keyed = sl.method != nil && sl.method.keyed && sl.problem == mpack.NoProblem && pid.Kind == mpack.Str &&
		len(pid.Data) <= wire.MaxIdentifier && sl.size < len(in) // a frame alone has no work in between
	if sl.keyed {
		sl.ahead.Begin(t.svc.kernel, pid.Data)
		r.queue = r.queue || sl.method.need&kernel.NeedQueue != 0
	}
}

// parseFast parses a faultless request to a known method in one pass. What is wrong with the body
// is left in the slot. It returns nil for a frame that validate has to check.
func (t *turn) parseFast(sl *slot) *method {
	if sl.typ != frame.Request {
		return nil
	}
	m := t.reading.method
	body, ok := t.reading.head.Parse(sl.payload, &sl.req)
	if !ok {
		if body, ok = mpack.ParseHead(sl.payload, &sl.req); !ok {
			return nil
		}
		if m = t.svc.routes.find(sl.req.Service, sl.req.Method); m == nil {
			return nil
		}
		t.reading.head.Keep(sl.payload, &sl.req, body)
		t.reading.method = m
	}
	var next int
	next, sl.problem = t.scan.ParseFields(sl.payload, body, m.want, sl.fields[:])
	if sl.problem == mpack.NoProblem && next != len(sl.payload) {
		sl.problem = mpack.TrailingBytes
	}
	if m.whole {
		sl.req.Body = sl.payload[body:]
	}
	return m
}
