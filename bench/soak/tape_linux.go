package soak

import (
	"fmt"
	"time"

	"trunkline/bench/internal/load"
)

// Tags of the requests, to know whose reply an ERROR frame is.
const (
	tagOther uint8 = iota
	tagNextRunnable
)

// rowsPerConn is how many processes of its own a connection cycles through.
const rowsPerConn = 4

// subscribeTimeout bounds the wait for streams to open.
const subscribeTimeout = 10 * time.Second

// eventType is what the Publish requests publish and the subscriber listens to.
const eventType = "soak.tick"

func rowPID(conn, row int) string { return fmt.Sprintf("50a00000-0000-4000-8000-%06x%06x", conn, row) }

// freshPID is replaced by the tape's counter, so every CreateProcess makes a new process; the
// connection keeps them apart.
func freshPID(conn int) string { return fmt.Sprintf("50b%05x-0000-4000-8%s", conn, load.Placeholder) }

func str(key, value string) load.Field { return load.Field{Key: key, Value: value} }

// create returns a CreateProcess request. Every process has a user of its own, because a user may
// create ten in ten seconds.
func create(pid, user string) []byte {
	return load.AppendRequest(nil, "soak-create", "kernel", "CreateProcess", str("pid", pid), str("user_id", user), str("request_id", pid), str("session_id", pid))
}

// mix encodes the endless mix of one connection. The first half of the rows' life is RUNNING, the
// second READY, so every transition is legal however often the tape repeats; the fresh process is
// created and ended within a few requests.
func mix(conn int) *load.Tape {
	tape := new(load.Tape)
	kernel := func(tag uint8, method string, body ...load.Field) {
		tape.Add(tag, load.AppendRequest(nil, "soak-"+method, "kernel", method, body...))
	}
	fresh := freshPID(conn)
	for i, state := range []string{"RUNNING", "READY"} {
		for row := range rowsPerConn {
			pid := str("pid", rowPID(conn, row))
			kernel(tagOther, "GetProcess", pid)
			kernel(tagOther, "TransitionState", pid, str("new_state", state))
			kernel(tagOther, "RecordUsage", pid, load.Field{Key: "llm_calls", Value: 1}, load.Field{Key: "tokens_in", Value: 120})
			tape.AddFresh(tagOther, create(fresh, fresh))
			kernel(tagOther, "CheckQuota", pid)
			kernel(tagOther, "CheckRateLimit", str("user_id", fmt.Sprintf("user-%d", conn)))
			kernel(tagNextRunnable, "GetNextRunnable")
			payload := fmt.Sprintf(`{"conn":%d,"row":%d,"half":%d}`, conn, row, i)
			tape.Add(tagOther, load.AppendRequest(nil, "soak-publish", "commbus", "Publish", str("event_type", eventType), str("payload", payload), str("source", "soak")))
			kernel(tagOther, "TerminateProcess", str("pid", fresh), str("reason", "done"))
		}
	}
	return tape
}

// prepare lifts the quotas and creates the rows of every connection.
func prepare(addr string, conns int) error {
	if err := load.LiftLimits(addr, "max_llm_calls", "max_input_tokens", "timeout_seconds"); err != nil {
		return err
	}
	tape := new(load.Tape)
	for conn := range conns {
		for row := range rowsPerConn {
			tape.Add(tagOther, create(rowPID(conn, row), rowPID(conn, row)))
		}
	}
	if err := load.SendOnce(addr, load.Kernel, []*load.Tape{tape}, 64); err != nil {
		return fmt.Errorf("cannot create the processes: %w", err)
	}
	return nil
}

// subscribe opens n streams of the published events. The one request of a connection is never
// answered: what comes are the chunks of its stream, an acknowledgement first.
func subscribe(addr string, n int) (*load.Session, error) {
	request := load.AppendRequest(nil, "soak-sub", "commbus", "Subscribe", load.Field{Key: "event_types", Value: []string{eventType}},
		load.Field{Key: "ack", Value: true})
	tapes := make([]*load.Tape, n)
	for i := range tapes {
		tapes[i] = new(load.Tape)
		tapes[i].Add(tagOther, request)
	}
	s, err := load.Start(load.Config{Addr: addr, Tapes: tapes, Depth: 1})
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(subscribeTimeout); s.Chunks() < uint64(n); time.Sleep(time.Millisecond) {
		select {
		case <-s.Done():
			_, err := s.Stop()
			return nil, fmt.Errorf("cannot subscribe: %w", err)
		default:
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("cannot subscribe: %d of %d streams are open", s.Chunks(), n)
		}
	}
	return s, nil
}
