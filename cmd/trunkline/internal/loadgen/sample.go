package loadgen

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range of every latency histogram, in nanoseconds, and its precision in decimal digits. Longer
// latencies count as HighestLatency.
const (
	LowestLatency  = 1
	HighestLatency = int64(time.Hour)
	latencyDigits  = 3
)

// The kinds of Sample.Errors that come from no server.
const (
	ErrorTimeout     = "timeout"           // no reply within Plan.Timeout of the intended start
	ErrorLost        = "connection lost"   // it ended with the request in flight
	ErrorUnconnected = "cannot connect"    // no connection to send it on within Plan.Timeout
	errorProtocol    = "malformed reply"   // the reply could not be read; its connection is closed
	OtherErrors      = "other error codes" // codes beyond MaxErrorKinds
)

// When a generator has missed its schedule.
const (
	lagTolerance = time.Millisecond
	lagShare     = 100
)

// NewHistogram returns an empty histogram of latencies.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(LowestLatency, HighestLatency, latencyDigits)
}

// Bytes counts what went over the connections, encryption aside.
type Bytes struct{ Sent, Received int64 }

// MethodSample is one method's part of a Sample.
type MethodSample struct {
	Done, Failed int64
	// Latency is nil in Result.Intervals.
	Latency *hdrhistogram.Histogram
}

// Sample is what one interval, or the whole run, gave. Latencies are of answered requests, errors
// replied included, in nanoseconds and from the intended start, so that there is no coordinated
// omission; timeouts count in it with the time they were given.
type Sample struct {
	// From and To are since the start of measuring; negative while warming up. Of two joined
	// intervals they span both.
	From, To time.Duration
	// Due counts the requests whose intended start lies in the sample, Sent those written, Done
	// those answered well, Failed those that ended in an error reply, a timeout or a lost
	// connection. A request counts where it happens: Done of one interval may have been Due in an
	// earlier one. For the whole run Due is Done + Failed, but for requests given up at its end.
	Due, Sent, Done, Failed int64
	// InFlight is the number of requests sent and not ended, at the end of the sample.
	InFlight int64
	// Lost counts connections that ended unannounced, Late the replies to requests that were given
	// up before.
	Lost, Late int64
	Bytes      Bytes
	// Latency belongs to the receiver. Its range is that of NewHistogram, in Result.Intervals
	// perhaps a shorter one.
	Latency *hdrhistogram.Histogram
	// ByMethod has every share of the mix, by name.
	ByMethod map[string]*MethodSample
	// Errors counts Failed by code, at most MaxErrorKinds and OtherErrors.
	Errors map[string]int64
}

// Result is a whole run.
type Result struct {
	Plan Plan
	// Start is when measuring began.
	Start time.Time
	// Total covers what was measured, without warming up.
	Total Sample
	// Intervals are those of observe from the start of measuring, in order, each from where the one
	// before it ended; at most keptIntervals, so those of a long run are longer than Plan.Interval,
	// all alike but for the last two. A rest of less than half an interval is part of the last one.
	Intervals []Sample
	// MissedSchedule is set when the generator itself could not keep up: it sent more than one
	// request in lagShare later than lagTolerance, though their connections had places free.
	// LatestLag is by how much at most. The latencies hold that lag.
	MissedSchedule bool
	LatestLag      time.Duration
	// Stopped is set when the context ended the run before its time: what was due then and not
	// answered counts nowhere but in Due.
	Stopped bool
}
