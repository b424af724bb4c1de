package ipc

import (
	"strconv"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/kernel"
	"trunkline/engine/store"
)

// refuse sets the text of the error to send.
func (t *turn) refuse(code wire.Code, text string) wire.Code {
	t.msg = append(t.msg[:0], text...)
	return code
}

// refuseAbout sets an error text of three parts, the middle one from the request.
func (t *turn) refuseAbout(code wire.Code, before string, what []byte, after string) wire.Code {
	t.msg = append(append(append(t.msg[:0], before...), what...), after...)
	return code
}

// saturated is refuse for the refusals that a client may simply repeat.
func (t *turn) saturated(text string) wire.Code {
	t.extras.Retryable = true
	return t.refuse(wire.ResourceExhausted, text)
}

// refuseChange refuses a change that the store does not take.
func (t *turn) refuseChange(r store.Refusal) wire.Code {
	switch r {
	case store.Overloaded:
		return t.queueFull()
	case store.Broken:
		return t.saturated("Storage cannot be written; try again")
	}
	return t.saturated("Storage is full; try again")
}

// queueFull is the refusal of kernel-ipc §2.6.
func (t *turn) queueFull() wire.Code {
	t.extras.QueueCapacity = t.svc.rt.Config.KernelQueueCapacity
	return t.saturated("Kernel request queue is full; try again")
}

// noReply drops the response begun: the request is answered by other frames.
func (t *turn) noReply() wire.Code {
	t.out = t.out[:t.start]
	t.silent = true
	return wire.OK
}

// fail replaces whatever was begun by an ERROR frame with the text and extras set before.
func (t *turn) fail(code wire.Code) {
	t.silent, t.later = false, false
	t.out = frame.Begin(t.out[:t.start], frame.Error)
	t.out = mpack.AppendError(t.out, t.id, code.String(), t.msg, t.extras)
}

// sealFrame finishes the frame at out[start]. One that is too large for its receiver is replaced by
// an error (kernel-ipc §3.5).
func sealFrame(out []byte, start int, id []byte, limit int) []byte {
	size := frame.Finish(out, start)
	if size <= limit {
		return out
	}
	return appendTooLarge(out[:start], id, size, limit)
}

func appendTooLarge(out, id []byte, size, limit int) []byte {
	var text [80]byte
	return appendErrorFrame(out, id, wire.ResourceExhausted, appendTooLargeText(text[:0], size, limit), mpack.Extras{})
}

func appendTooLargeText(dst []byte, size, limit int) []byte {
	dst = strconv.AppendInt(append(dst, "Response too large: "...), int64(size), 10)
	dst = strconv.AppendInt(append(dst, " bytes (max "...), int64(limit), 10)
	return append(dst, ')')
}

// appendErrorFrame appends a whole ERROR frame.
func appendErrorFrame[T ~string | ~[]byte](out, id []byte, code wire.Code, text T, e mpack.Extras) []byte {
	start := len(out)
	out = mpack.AppendError(frame.Begin(out, frame.Error), id, code.String(), text, e)
	frame.Finish(out, start)
	return out
}

// process appends the PCB in t.pcb.
func (t *turn) process() wire.Code {
	t.svc.viewProcess(&t.proc, &t.pcb)
	t.out = mpack.AppendProcess(t.out, &t.proc)
	return wire.OK
}

func (s *Service) viewProcess(dst *mpack.Process, p *kernel.PCB) {
	dst.PID, dst.RequestID, dst.UserID, dst.SessionID = p.PID, p.RequestID, p.UserID, p.SessionID
	dst.State, dst.Priority = p.State.String(), p.Priority.String()
	dst.CurrentStage = s.orch.CurrentStage(p.PID)
	dst.Usage = *shown(&p.Usage)
}

// shown returns the counters that replies show.
func shown(u *kernel.Usage) *mpack.Usage { return (*mpack.Usage)(u[:]) }
