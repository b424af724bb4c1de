package method

import "trunkline/engine/obs"

// Aside is what a surface answers beside the methods.
type Aside int

// What is answered aside.
const (
	AsideAuth     Aside = iota // an auth line
	AsidePing                  // a ping line
	AsideEndpoint              // a request to MCP that calls no tool
	AsideOther                 // any other path of HTTP
	AsideInvalid               // what reaches no method
	asides
)

// NewMeter returns the meter of agent threads, one for all surfaces. Its rows are the numbers of
// the methods, then those of what is answered aside. rec may be nil.
func NewMeter(rec *obs.Recorder) *obs.Meter {
	names := make([]string, len(Rows), len(Rows)+int(asides))
	for i := range Rows {
		names[i] = Rows[i].Name
	}
	return rec.Meter("threads", append(names, "auth", "ping", "mcp_endpoint", "other", obs.InvalidMethod))
}

// Number returns the row of a meter.
func (a Aside) Number() int { return len(Rows) + int(a) }

// Failed returns how many of one answer are errors.
func Failed(failed bool) int64 {
	if failed {
		return 1
	}
	return 0
}
