package codec

import (
	"strconv"

	"trunkline/engine/projects/errcode"
)

// Event is the envelope of an event (exacta §3.4).
type Event struct {
	Name        string
	ID          ID
	RequestID   []byte // nil: no request caused it
	Correlation ID
	Seq         uint64 // of the correlation
	Project     ID
	StreamSeq   uint64 // of the project
}

// AppendEvent appends an event; payload is its JSON.
func AppendEvent(dst []byte, e *Event, clock Clock, payload []byte) []byte {
	dst = append(append(dst, `{"ipc_version":"1.0","type":"event","event":"`...), e.Name...)
	dst = e.ID.Append(append(dst, `","event_id":"`...))
	dst = clock.Append(append(dst, `","sent_at":"`...))
	dst = appendRequestID(append(dst, `","request_id":`...), e.RequestID)
	dst = e.Correlation.Append(append(dst, `,"correlation_id":"`...))
	dst = strconv.AppendUint(append(dst, `","seq":`...), e.Seq, 10)
	dst = e.Project.Append(append(dst, `,"project_id":"`...))
	dst = strconv.AppendUint(append(dst, `","stream_seq":`...), e.StreamSeq, 10)
	dst = append(append(dst, `,"payload":`...), payload...)
	return append(dst, "}\n"...)
}

// AppendStateChanged appends the payload of StateChanged.
func AppendStateChanged(dst []byte, from, to, trigger string) []byte {
	dst = append(append(dst, `{"from":"`...), from...)
	dst = append(append(dst, `","to":"`...), to...)
	dst = append(append(dst, `","trigger":"`...), trigger...)
	return append(dst, `"}`...)
}

// AppendProgress appends the payload of Progress.
func AppendProgress(dst []byte, phase string, current, total int) []byte {
	dst = append(append(dst, `{"phase":"`...), phase...)
	dst = strconv.AppendInt(append(dst, `","current":`...), int64(current), 10)
	dst = strconv.AppendInt(append(dst, `,"total":`...), int64(total), 10)
	return append(dst, '}')
}

// AppendStepStarted appends the payload of StepStarted.
func AppendStepStarted(dst []byte, step string, order int, description string) []byte {
	dst = append(append(dst, `{"step_id":"`...), step...)
	dst = strconv.AppendInt(append(dst, `","order":`...), int64(order), 10)
	dst = AppendText(append(dst, `,"description":`...), description)
	return append(dst, '}')
}

// AppendStepCompleted appends the payload of StepCompleted.
func AppendStepCompleted(dst []byte, step string, ok bool, ms int64) []byte {
	dst = append(append(dst, `{"step_id":"`...), step...)
	dst = strconv.AppendBool(append(dst, `","ok":`...), ok)
	dst = strconv.AppendInt(append(dst, `,"duration_ms":`...), ms, 10)
	return append(dst, '}')
}

// AppendDiffProposed appends the payload of DiffProposed.
func AppendDiffProposed(dst []byte, step, diff string) []byte {
	dst = append(append(dst, `{"step_id":"`...), step...)
	dst = AppendText(append(dst, `","diff":`...), diff)
	return append(dst, '}')
}

// maxLog bounds the message of a LogEntry, in bytes (exacta §6.1).
const maxLog = 2048

// AppendLogEntry appends the payload of LogEntry.
func AppendLogEntry(dst []byte, level, component, message string, correlation ID) []byte {
	dst = append(append(dst, `{"level":"`...), level...)
	dst = append(append(dst, `","component":"`...), component...)
	dst = AppendText(append(dst, `","message":`...), Clip(message, maxLog))
	dst = correlation.Append(append(dst, `,"correlation_id":"`...))
	return append(dst, `"}`...)
}

// AppendErrorRaised appends the payload of ErrorRaised.
func AppendErrorRaised(dst []byte, f *errcode.Fault) []byte {
	return append(appendFault(append(dst, `{"error":`...), f), '}')
}
