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

// Field is one entry of a request body.
type Field struct {
	Key   string
	Value any // string, int, bool, []string, []Field or Raw
}

// Raw is a value that is MessagePack already, for requests that no encoder would make.
type Raw = msgp.Raw

// AppendRequest appends one REQUEST frame to dst. It is set-up code: the tapes are encoded before a
// run.
func AppendRequest(dst []byte, id, service, method string, body ...Field) []byte {
	start := len(dst)
	dst = mpack.AppendRequest(frame.Begin(dst, frame.Request), id, service, method, string(appendFields(nil, body)))
	frame.Finish(dst, start)
	return dst
}

// appendFields appends a map in the order of the fields.
func appendFields(dst []byte, fields []Field) []byte {
	dst = mpack.AppendMap(dst, len(fields))
	for _, f := range fields {
		dst = mpack.AppendStr(dst, f.Key)
		if inner, ok := f.Value.([]Field); ok {
			dst = appendFields(dst, inner)
			continue
		}
		var err error
		if dst, err = msgp.AppendIntf(dst, f.Value); err != nil {
			panic(fmt.Sprintf("BUG: a body field of type %T", f.Value))
		}
	}
	return dst
}

// Failure is the error of an ERROR frame.
type Failure struct{ ID, Code, Message string }

// Error implements error.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// ParseFailure decodes the payload of an ERROR frame (kernel-ipc §3.5).
func ParseFailure(payload []byte) (*Failure, error) {
	var f message.Frame
	if _, err := f.UnmarshalMsg(payload); err != nil {
		return nil, fmt.Errorf("cannot decode a payload of %d bytes: %w", len(payload), err)
	}
	if f.Error == nil || f.Error.Code == "" {
		return nil, errors.New("cannot read an ERROR frame: no code")
	}
	return &Failure{f.ID, f.Error.Code, f.Error.Message}, nil
}

// refused is an ERROR frame as an error.
func refused(payload []byte) error {
	f, err := ParseFailure(payload)
	if err != nil {
		return err
	}
	return f
}
