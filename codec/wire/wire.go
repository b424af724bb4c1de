package wire

// Code is the closed set of error codes a peer may see on the wire (kernel-ipc §3.5). It deliberately does not implement
// error: a Code is something we tell a peer, never something our own functions return as failure.
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
	// DefaultMaxFrame is the default bound on a frame's length field, in bytes (kernel-ipc §2.1). The comparison is on the
	// length field, which counts the type byte, so the largest payload is one byte less.
	DefaultMaxFrame = 5 << 20
	// MaxIdentifier bounds every identifier string in bytes, because identifiers are stored and echoed into other clients'
	// frames (kernel-ipc D4).
	MaxIdentifier = 1024
	// MaxMsgpackDepth bounds MessagePack nesting, counting the top-level value as level one (kernel-ipc §3.3).
	MaxMsgpackDepth = 512
	// MaxJSONDepth bounds JSON nesting in payloads and results (kernel-ipc D7).
	MaxJSONDepth = 128
)
