package ipc

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strconv"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/idem"
)

// IdempotencyKey is the member that a request to any method which changes something may have. The
// first request with a key is executed, those that repeat it get its answer. Its length in bytes is
// bounded: a shorter one could be guessed, or be chosen twice.
const (
	IdempotencyKey    = "idempotency_key"
	minIdempotencyKey = 32
	maxIdempotencyKey = 200
)

// isKeyed reports whether the request at hand has an idempotency key that counts.
func (t *turn) isKeyed(m *method) bool {
	return m.durability != None && t.fields[len(m.fields)].Kind > mpack.Nil
}

// handleKeyed runs the handler for the first request with its key. The caller has the changes go
// into one block, so that a crash keeps the change with its answer or neither. Where they are more
// than a block takes, the record of the key comes first: then the outcome is unknown, and nothing
// is executed again.
func (t *turn) handleKeyed(m *method) wire.Code {
	v := &t.fields[len(m.fields)]
	if v.Kind != mpack.Str {
		t.bad(IdempotencyKey, " must be a string")
		return wire.InvalidArgument
	}
	if n := len(v.Data); n < minIdempotencyKey || n > maxIdempotencyKey {
		t.bad(IdempotencyKey, " must have 32 to 200 bytes, got ")
		t.msg = strconv.AppendInt(t.msg, int64(n), 10)
		return wire.InvalidArgument
	}
	key, input, w := t.requestKey(m, v.Data), t.fingerprint(m), make(coalesced, 1)
	for {
		switch outcome, first := t.svc.requests.Begin(t.now.Mono, key, input, w); outcome {
		case idem.Started:
			return t.execute(m, key)
		case idem.Done:
			return t.repeat(first)
		case idem.InFlight: // on another event loop, which waits for nothing
			if first := <-w; first != nil {
				return t.repeat(first)
			}
		case idem.Conflict:
			return t.refuse(wire.FailedPrecondition, "idempotency_key was used for another request")
		case idem.Unknown:
			return t.refuse(wire.FailedPrecondition, "Outcome of the first request with this idempotency_key is unknown")
		default:
			return t.saturated("Idempotency table is full; try again later")
		}
	}
}

// coalesced gets the outcome of the execution that a request waits for.
type coalesced chan *idem.Stored

// Wake implements idem.Waiter.
func (w coalesced) Wake(first *idem.Stored) { w <- first }

// requestKey returns the key of the request at hand: it belongs to the user that the request names,
// and all requests that name none share a scope.
func (t *turn) requestKey(m *method, key []byte) idem.Key {
	var user []byte
	if i := slices.Index(m.fields, "user_id"); i >= 0 && t.fields[i].Kind == mpack.Str {
		user = t.fields[i].Data
	}
	return idem.KeyOf(user, nil, key)
}

// fingerprint returns the SHA-256 of the method and the fields of the request at hand, which does
// not depend on the order of the fields.
func (t *turn) fingerprint(m *method) (sum [sha256.Size]byte) {
	h := sha256.New()
	var buf []byte
	add := func(name string, kind mpack.Kind, n uint64) {
		buf = binary.BigEndian.AppendUint64(append(append(buf[:0], name...), 0, byte(kind)), n)
		h.Write(buf)
	}
	add(m.service+"."+m.name, mpack.Absent, 0)
	for i, name := range m.fields {
		switch v := &t.fields[i]; v.Kind {
		case mpack.Absent, mpack.Nil:
		case mpack.Str, mpack.Array, mpack.Map:
			add(name, v.Kind, uint64(len(v.Data)))
			h.Write(v.Data)
		case mpack.Bool, mpack.Int, mpack.BigUint:
			add(name, v.Kind, uint64(v.Int))
		default:
			add(name, v.Kind, 0) // no field takes one
		}
	}
	h.Sum(sum[:0])
	return sum
}

// execute runs the handler, and keeps its answer under the key.
func (t *turn) execute(m *method, key idem.Key) (code wire.Code) {
	body, answer := len(t.out), idem.Stored{Status: uint8(wire.Internal), Error: "Internal error"}
	defer func() { // also of a handler that crashed: it may have changed something
		if t.transient || code != wire.OK && !keepsAnswer(code) {
			t.svc.requests.Release(key)
			return
		}
		t.svc.requests.Finish(key, answer)
	}()
	t.transient = false
	code = m.handle(t)
	answer.Status, answer.Error = uint8(code), string(t.msg)
	if code == wire.OK {
		answer.Error, answer.Output = "", base64.RawStdEncoding.AppendEncode(nil, t.out[body:])
	}
	return code
}

// keepsAnswer reports whether the refusal of a request is its answer for good. A request that is
// invalid stays so, and what the server had no capacity or no time for may succeed later: both have
// changed nothing.
func keepsAnswer(code wire.Code) bool {
	switch code {
	case wire.InvalidArgument, wire.ResourceExhausted, wire.Unavailable, wire.Cancelled, wire.Timeout:
		return false
	}
	return true
}

// repeat answers with the answer to the first request.
func (t *turn) repeat(first *idem.Stored) wire.Code {
	if code := wire.Code(first.Status); code != wire.OK {
		return t.refuse(code, first.Error)
	}
	var err error
	if t.out, err = base64.RawStdEncoding.AppendDecode(t.out, first.Output); err != nil {
		return t.refuse(wire.Internal, "Internal error")
	}
	return wire.OK
}
