// Package wire holds what every protocol has on the wire: the closed set of error codes and the
// limits of protocols. It has no state, no I/O and no dependencies.
package wire

// Code is the closed set of error codes that a peer may see (kernel-ipc §3.5). It does not
// implement error, on purpose: a Code goes to a peer, and is never the failure of a function.
type Code uint8

// The codes of kernel-ipc §3.5. The zero Code means "no error" and is never sent.
const (
	OK Code = iota
	NotFound
	InvalidArgument
	FailedPrecondition
	ResourceExhausted
	Unavailable
	Cancelled
	Timeout
	Internal

	numCodes
)

var codeNames = [numCodes]string{
	OK:                 "OK",
	NotFound:           "NOT_FOUND",
	InvalidArgument:    "INVALID_ARGUMENT",
	FailedPrecondition: "FAILED_PRECONDITION",
	ResourceExhausted:  "RESOURCE_EXHAUSTED",
	Unavailable:        "UNAVAILABLE",
	Cancelled:          "CANCELLED",
	Timeout:            "TIMEOUT",
	Internal:           "INTERNAL",
}

// NumCodes is the number of codes, OK included: the length of a table indexed by Code.
const NumCodes = int(numCodes)

// String returns the code's wire spelling. It does not allocate.
func (c Code) String() string {
	if c >= numCodes {
		return "INTERNAL"
	}
	return codeNames[c]
}

// ParseCode returns the Code spelled s; ok is false for a spelling outside the set.
func ParseCode(s string) (c Code, ok bool) {
	for i, name := range codeNames {
		if name == s {
			return Code(i), true
		}
	}
	return OK, false
}

// Limits that are part of the protocol rather than of a deployment.
const (
	// DefaultMaxFrame is the default bound on a frame's length field, in bytes (kernel-ipc §2.1).
	// The field counts the type byte, so the largest payload is one byte less.
	DefaultMaxFrame = 5 << 20
	// MaxIdentifier bounds every identifier string in bytes, because identifiers are stored and
	// echoed into other clients' frames (kernel-ipc D4).
	MaxIdentifier = 1024
	// MaxMsgpackDepth bounds MessagePack nesting; the top-level value is level one (kernel-ipc
	// §3.3).
	MaxMsgpackDepth = 512
	// MaxJSONDepth bounds JSON nesting in payloads and results (kernel-ipc D7).
	MaxJSONDepth = 128
)
