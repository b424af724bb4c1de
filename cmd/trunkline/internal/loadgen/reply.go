package loadgen

import "errors"

// reply is one answer, as far as counting it needs. code points into the bytes it was read from, or
// belongs to the dialect; it is valid until the next call.
type reply struct {
	id    uint64
	hasID bool // it names its request; else it answers the oldest one
	none  bool // it answers nothing: an event of a stream, a provisional response
	stray bool // it is about the connection, not about a request
	ok    bool
	final bool // the server closes the connection behind it
	code  []byte
}

// dialect reads the replies of one connection.
type dialect interface {
	// next reads the reply at the front of in: n is its length. With n 0 the reply is not whole; it
	// needs at least need bytes. It does not allocate for a reply that is a success.
	next(in []byte, r *reply) (n, need int, err error)
	// end reads what is left when the stream has ended; ok reports whether that is a reply.
	end(in []byte, r *reply) (ok bool)
}

// maxReply bounds one reply, in bytes: three times what servers send at most.
const maxReply = 16 << 20

// maxCode bounds the length of an error's code as it is counted.
const maxCode = 64

var (
	errMalformed = errors.New("malformed reply")
	errFinal     = errors.New("the server closes the connection")
	errTooLarge  = errors.New("reply too large")
)

func newDialect(protocol string) dialect {
	switch protocol {
	case ProtocolKernel:
		return newFrames()
	case ProtocolToolhost:
		return newLines()
	}
	return &responses{}
}

// clip shortens a code.
func clip(code []byte) []byte { return code[:min(len(code), maxCode)] }
