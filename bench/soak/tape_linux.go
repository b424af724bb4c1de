package soak

import (
	"fmt"

	"trunkline/bench/internal/load"
)

// Tags of the requests, to know whose reply an ERROR frame is.
const (
	tagOther uint8 = iota
	tagNextRunnable
)

// rowsPerConn is how many processes of its own a connection cycles through.
const rowsPerConn = 4

// eventType is what the Publish requests publish and the subscriber listens to, and eventText the
// bytes of text in each.
const (
	eventType = "soak.tick"
	eventText = 26
)

func str(key, value string) load.Field { return load.Field{Key: key, Value: value} }

// mix encodes the endless mix of one connection. The first half of the rows' life is RUNNING, the
// second READY, so every transition is legal however often the tape repeats; the fresh process is
// created and ended within a few requests. It has a user of its own, because a user may create ten
// in ten seconds, and the tape's counter in its identifier.
func mix(conn int) *load.Tape {
	tape := new(load.Tape)
	add := func(service, method string, body ...load.Field) {
		tape.Add(tagOther, load.AppendRequest(nil, "soak-"+method, service, method, body...))
	}
	fresh := fmt.Sprintf("50b%05x-0000-4000-8000-%s", conn, load.Placeholder)
	create := load.AppendRequest(nil, "soak-create", "kernel", "CreateProcess", str("pid", fresh), str("user_id", fresh), str("request_id", fresh), str("session_id", fresh))
	for _, state := range []string{"RUNNING", "READY"} {
		for row := conn * rowsPerConn; row < (conn+1)*rowsPerConn; row++ {
			tape.Add(tagOther, load.RowRequest("GetProcess", row))
			tape.Add(tagOther, load.RowRequest("TransitionState", row, str("new_state", state)))
			tape.Add(tagOther, load.RowRequest("RecordUsage", row))
			tape.AddFresh(tagOther, create)
			tape.Add(tagOther, load.RowRequest("CheckQuota", row))
			add("kernel", "CheckRateLimit", str("user_id", fmt.Sprintf("user-%d", conn)))
			tape.Add(tagNextRunnable, load.AppendRequest(nil, "soak-next", "kernel", "GetNextRunnable"))
			tape.Add(tagOther, load.Publish(eventType, eventText, "soak"))
			add("kernel", "TerminateProcess", str("pid", fresh), str("reason", "done"))
		}
	}
	return tape
}
