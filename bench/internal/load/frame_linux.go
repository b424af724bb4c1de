package load

import (
	"errors"
	"fmt"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/handlers/ipc/message"
)

// The message types of kernel-ipc §2.1.
const (
	Request  = byte(frame.Request)
	Response = byte(frame.Response)
	Chunk    = byte(frame.StreamChunk)
	Error    = byte(frame.Error)
)

const maxFrame = 5 << 20

// Raw is a value that is MessagePack already, for requests that no encoder would make.
type Raw = msgp.Raw

// requestID is as long as that of a client with a counter.
const requestID = "r0000001"

// NewRequest encodes a REQUEST frame, with a body of these pairs (see Map).
func NewRequest(service, method string, body ...any) []byte {
	return frame.Append(nil, frame.Request, mpack.AppendRequest(nil, requestID, service, method, string(Map(body...))), nil)
}

// Map encodes pairs of a key and its value: a string, an int, a bool, a []string, Raw or a Map.
func Map(pairs ...any) Raw {
	b := mpack.AppendMap(nil, len(pairs)/2)
	for _, v := range pairs {
		var err error
		if b, err = msgp.AppendIntf(b, v); err != nil {
			panic(fmt.Sprintf("BUG: a request with a value of type %T", v))
		}
	}
	return b
}

// Failure is the error of an ERROR frame.
type Failure struct{ ID, Code, Message string }

// Error implements error.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// refused is an ERROR frame as an error, most often a *Failure (kernel-ipc §3.5).
func refused(payload []byte) error {
	var f message.Frame
	if _, err := f.UnmarshalMsg(payload); err != nil {
		return fmt.Errorf("cannot decode a payload of %d bytes: %w", len(payload), err)
	}
	if f.Error == nil || f.Error.Code == "" {
		return errors.New("cannot read an ERROR frame: no code")
	}
	return &Failure{f.ID, f.Error.Code, f.Error.Message}
}
