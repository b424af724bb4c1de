package tool

// Status is how a call of a tool went (toolhost §3.5 "StepStatus").
type Status uint8

// The statuses. No other goes over the wire.
const (
	OK          Status = iota // the tool succeeded
	InvalidPick               // a selector chose what it must not
	ToolError                 // the tool failed, or could not be run, or its result is too large
	BreakerTrip               // not run: its circuit breaker is open, or the budget of the run is spent
)

// String returns the status as it is on the wire. It does not allocate.
func (s Status) String() string {
	switch s {
	case OK:
		return "OK"
	case InvalidPick:
		return "INVALID_PICK"
	case BreakerTrip:
		return "BREAKER_TRIP"
	}
	return "TOOL_ERROR"
}

// ParseStatus reads what a worker calls its status; anything unknown, the empty text included, is ToolError (toolhost §3.5).
// It does not allocate.
func ParseStatus(text []byte) Status {
	switch string(text) {
	case "OK":
		return OK
	case "INVALID_PICK":
		return InvalidPick
	case "BREAKER_TRIP":
		return BreakerTrip
	}
	return ToolError
}
