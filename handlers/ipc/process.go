package ipc

import (
	"encoding/hex"

	"github.com/google/uuid"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/kernel"
)

// uuidLen is the length of a UUID with hyphens.
const uuidLen = 36

// createProcess is kernel-ipc §4.1.
func createProcess(t *turn) wire.Code {
	if !t.createArgs() {
		return wire.InvalidArgument
	}
	result, rate := t.svc.kernel.Create(t.now, &t.create, &t.pcb)
	switch result {
	case kernel.AlreadyExists:
		return t.refuseAbout(wire.FailedPrecondition, "Process ", t.create.PID, " already exists")
	case kernel.TableFull:
		return t.saturated("Process table is full")
	case kernel.RateLimited:
		t.msg = rate.AppendReason(t.msg)
		t.extras.RetryAfter = float64(rate.RetryAfter)
		return wire.ResourceExhausted
	}
	return t.process()
}

// createArgs fills t.create from the body.
func (t *turn) createArgs() (ok bool) {
	a, f := &t.create, t.fields
	*a = kernel.CreateArgs{Priority: kernel.Normal}
	if a.PID, ok = t.identifier(&f[0], "pid"); !ok {
		return false
	}
	if a.RequestID, a.UserID, a.SessionID, ok = t.origin(f[1:4]); !ok {
		return false
	}
	if a.Priority, ok = t.priority(&f[4]); !ok || !t.quota(&f[5], &a.Quota) {
		return false
	}
	schedule, ok := t.flag(&f[6], "schedule", true)
	a.NoSchedule = !schedule
	t.fillIDs(a)
	return ok
}

var anonymous = []byte("anonymous")

func (t *turn) fillIDs(a *kernel.CreateArgs) {
	if a.RequestID == nil {
		a.RequestID = newUUID(&t.ids[0])
	}
	if a.SessionID == nil {
		a.SessionID = newUUID(&t.ids[1])
	}
	if a.UserID == nil {
		a.UserID = anonymous
	}
}

// newUUID writes a random UUID's text (kernel-ipc §6) into dst and returns it.
func newUUID(dst *[uuidLen]byte) []byte {
	u := uuid.New()
	hex.Encode(dst[:8], u[:4])
	at := 8
	for _, part := range [][]byte{u[4:6], u[6:8], u[8:10], u[10:]} {
		dst[at] = '-'
		at += 1 + hex.Encode(dst[at+1:], part)
	}
	return dst[:]
}

func (t *turn) priority(v *mpack.Value) (kernel.Priority, bool) {
	switch v.Kind {
	case mpack.Absent, mpack.Nil:
		return kernel.Normal, true
	case mpack.Str:
		p, ok := kernel.ParsePriority(v.Data)
		if !ok {
			t.refuseAbout(wire.InvalidArgument, "Invalid priority: ", v.Data, "")
		}
		return p, ok
	}
	return 0, t.bad("priority", " must be a string")
}

// found answers NOT_FOUND for a pid the kernel does not know.
func (t *turn) notFound(pid []byte) wire.Code {
	return t.refuseAbout(wire.NotFound, "Process ", pid, " not found")
}

// getProcess is kernel-ipc §4.2.
func getProcess(t *turn) wire.Code {
	pid, ok := t.identifier(&t.fields[0], "pid")
	if !ok {
		return wire.InvalidArgument
	}
	if t.svc.kernel.Get(pid, t.ahead, &t.pcb) != kernel.OK {
		return t.notFound(pid)
	}
	code := t.process()
	t.seen = max(t.pcb.Recorded, t.svc.rt.Orchestrated()) // after the stage was looked up
	return code
}

// scheduleProcess is kernel-ipc §4.3.
func scheduleProcess(t *turn) wire.Code {
	pid, ok := t.identifier(&t.fields[0], "pid")
	if !ok {
		return wire.InvalidArgument
	}
	switch t.svc.kernel.Schedule(t.now, pid, &t.pcb) {
	case kernel.NotFound:
		return t.notFound(pid)
	case kernel.NotSchedulable:
		t.refuseAbout(wire.FailedPrecondition, "Cannot schedule process ", pid, ": state is ")
		t.msg = append(append(t.msg, t.pcb.State.String()...), ", expected NEW"...)
		return wire.FailedPrecondition
	}
	return t.process()
}

// getNextRunnable is kernel-ipc §4.4.
func getNextRunnable(t *turn) wire.Code {
	start, ok := t.flag(&t.fields[0], "start", false)
	if !ok {
		return wire.InvalidArgument
	}
	if t.svc.kernel.Next(t.now, start, &t.pcb) != kernel.OK {
		return t.refuse(wire.NotFound, "No runnable processes")
	}
	return t.process()
}

// transitionState is kernel-ipc §4.5.
func transitionState(t *turn) wire.Code {
	f := t.fields
	pid, ok := t.identifier(&f[0], "pid")
	if !ok {
		return wire.InvalidArgument
	}
	if f[1].Kind != mpack.Str {
		return t.refuse(wire.InvalidArgument, "Missing required field: new_state")
	}
	to, ok := kernel.ParseState(f[1].Data)
	if !ok {
		return t.refuseAbout(wire.InvalidArgument, "Invalid process state: ", f[1].Data, "")
	}
	reason, ok := t.text(&f[2], "reason")
	if !ok {
		return wire.InvalidArgument
	}
	if to == kernel.Terminated && !t.whole { // its session and its envelope end too
		t.svc.store.Begin()
		defer t.svc.store.End()
	}
	switch t.svc.kernel.Transition(t.now, pid, t.ahead, to, reason, &t.pcb) {
	case kernel.NotFound:
		return t.notFound(pid)
	case kernel.BadTransition:
		t.refuse(wire.FailedPrecondition, "Invalid transition from ")
		t.msg = append(append(append(t.msg, t.pcb.State.String()...), " to "...), to.String()...)
		return wire.FailedPrecondition
	}
	if to == kernel.Terminated {
		t.svc.orch.ProcessEnded(t.scratch(), pid)
	}
	return t.process()
}

// terminateProcess is kernel-ipc §4.6.
func terminateProcess(t *turn) wire.Code {
	pid, ok := t.identifier(&t.fields[0], "pid")
	if !ok {
		return wire.InvalidArgument
	}
	reason, ok := t.text(&t.fields[1], "reason")
	if !ok {
		return wire.InvalidArgument
	}
	if t.svc.kernel.Terminate(t.now, pid, reason, &t.pcb) != kernel.OK {
		return t.notFound(pid)
	}
	t.svc.orch.ProcessEnded(t.scratch(), pid)
	return t.process()
}
