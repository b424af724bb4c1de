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

// statusNames are the statuses as they are on the wire.
var statusNames = [...]string{"OK", "INVALID_PICK", "TOOL_ERROR", "BREAKER_TRIP"}

// String returns the status as it is on the wire. It does not allocate.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return statusNames[ToolError]
}

// ParseStatus reads the status that a worker sent; anything unknown, the empty text included, is
// ToolError (toolhost §3.5). It does not allocate.
func ParseStatus(text []byte) Status {
	for s, name := range statusNames {
		if name == string(text) {
			return Status(s)
		}
	}
	return ToolError
}
