package ipc

import (
	"bytes"
	"math"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/kernel"
)

const (
	// inlineRows is the largest table a listing walks on the goroutine that asked; a larger one
	// would hold an event loop for more than about a millisecond.
	inlineRows = 2048
	// maxWalkers bounds the listings that walk at a time: the loops need the processors.
	maxWalkers = 2
)

// listing is one ListProcesses request, free of lent bytes.
type listing struct {
	svc    *Service
	id     []byte
	filter kernel.ListFilter
	s      *session
	limit  int64 // 0: none
	keyed  bool  // the reply has the creation sequences
	keys   []byte

	out      []byte // the array's elements
	size     int    // what the elements come to, also those left out of out
	count    int
	more     bool
	lastSeen uint64
	proc     mpack.Process
}

// listProcesses is kernel-ipc §4.10. On a large table it runs beside the loop, and later requests
// of the connection wait.
func listProcesses(t *turn) wire.Code {
	l := &listing{svc: t.svc, s: t.s, id: bytes.Clone(t.id)}
	if !l.read(t) {
		return wire.InvalidArgument
	}
	if t.svc.kernel.Len() <= inlineRows {
		l.walk()
		t.noReply()
		t.out = l.appendFrame(t.out)
		return wire.OK
	}
	return t.beside(l.id, func() []byte {
		l.walk()
		return l.appendFrame(nil)
	})
}

// beside makes a long answer on a goroutine of its own, from copies. The connection's later
// requests wait for it.
func (t *turn) beside(id []byte, answer func() []byte) wire.Code {
	svc, s := t.svc, t.s
	if svc.walking.Add(1) > int64(svc.rt.Config.KernelQueueCapacity+maxWalkers) {
		svc.walking.Add(-1)
		return t.queueFull()
	}
	s.blocked = true
	a := t.asked()
	go func() {
		svc.walkers <- struct{}{}
		defer func() {
			<-svc.walkers
			svc.walking.Add(-1)
		}()
		s.post(letter{frame: svc.recoverPanic(id, answer), unblocks: true, asked: a})
	}()
	return t.answerLater()
}

// recoverPanic returns the answer, or INTERNAL if it panics (kernel-ipc D11).
func (s *Service) recoverPanic(id []byte, answer func() []byte) (out []byte) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("recovered from a crash beside the loop", "panic", r)
			out = appendErrorFrame(nil, id, wire.Internal, "Internal error", mpack.Extras{})
		}
	}()
	return answer()
}

func (l *listing) read(t *turn) bool {
	f := t.fields
	state, ok := t.text(&f[0], "state")
	if !ok {
		return false
	}
	if state != nil {
		if l.filter.State, l.filter.HasState = kernel.ParseState(state); !l.filter.HasState {
			t.refuseAbout(wire.InvalidArgument, "Invalid process state: ", state, "")
			return false
		}
	}
	user, ok := t.optionalID(&f[1], "user_id")
	if !ok {
		return false
	}
	l.filter.UserID = bytes.Clone(user)
	cursor, ok := t.i64(&f[2], "cursor")
	if !ok {
		return false
	}
	l.filter.Cursor = uint64(cursor)
	if !l.readLimit(t, &f[3]) {
		return false
	}
	l.keyed, ok = t.flag(&f[4], "created", false)
	return ok
}

func (l *listing) readLimit(t *turn, v *mpack.Value) (ok bool) {
	if v.Kind == mpack.Int && v.Int < 1 {
		return t.bad("limit", " must be positive")
	}
	l.limit, ok = t.counter(v, "limit", math.MaxInt64, "i64")
	return ok
}

func (l *listing) walk() { l.svc.kernel.List(&l.filter, l.visit) }

// visit adds one process. Past the frame bound only the size is kept up, for the refusal to name.
// No client waits for the list of a connection that is gone.
func (l *listing) visit(p *kernel.PCB) bool {
	if l.s.gone.Load() {
		return false
	}
	if l.limit > 0 && int64(l.count) == l.limit {
		l.more = true
		return false
	}
	before := len(l.out)
	l.svc.viewProcess(&l.proc, p)
	l.out = mpack.AppendProcess(l.out, &l.proc)
	l.size += len(l.out) - before
	if l.keyed {
		l.keys = mpack.AppendUint(l.keys, p.Created)
	}
	if l.size > l.svc.maxFrame {
		l.out = l.out[:0]
	}
	l.count++
	l.lastSeen = p.Created
	return true
}

// appendFrame appends the whole answer.
func (l *listing) appendFrame(out []byte) []byte {
	start, keys := len(out), 1
	if l.more {
		keys++
	}
	if l.keyed {
		keys++
	}
	out = mpack.AppendResponseHead(frame.Begin(out, frame.Response), l.id)
	out = mpack.AppendStr(mpack.AppendMap(out, keys), "processes")
	out = mpack.AppendArray(out, l.count)
	head := len(out)
	out = l.appendTail(out)
	tail := len(out) - head
	if size := head + tail - start - frame.PrefixSize + l.size; size > l.svc.maxFrame {
		return appendTooLarge(out[:start], l.id, size, l.svc.maxFrame)
	}
	out = l.appendTail(append(out[:head], l.out...))
	frame.Finish(out, start)
	return out
}

// appendTail appends the members behind the processes.
func (l *listing) appendTail(out []byte) []byte {
	if l.more {
		out = mpack.AppendUint(mpack.AppendStr(out, "next_cursor"), l.lastSeen)
	}
	if l.keyed {
		out = append(mpack.AppendArray(mpack.AppendStr(out, "created"), l.count), l.keys...)
	}
	return out
}
