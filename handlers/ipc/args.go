package ipc

import (
	"math"
	"strconv"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
)

// The helpers of this file are the typing rules of kernel-ipc §3.4. Each validates one field. It
// reports false after it has set the refusal's text; the handler then returns wire.InvalidArgument.

// bad sets the text "<field><rest>".
func (t *turn) bad(field, rest string) bool {
	t.msg = append(append(t.msg[:0], field...), rest...)
	return false
}

// required is a string that must be there and not be empty.
func (t *turn) required(v *mpack.Value, field string) ([]byte, bool) {
	if v.Kind != mpack.Str {
		t.refuse(wire.InvalidArgument, "Missing required field: ")
		t.msg = append(t.msg, field...)
		return nil, false
	}
	if len(v.Data) == 0 {
		return nil, t.bad(field, " cannot be empty")
	}
	return v.Data, true
}

// identifier is a required string of at most wire.MaxIdentifier bytes.
func (t *turn) identifier(v *mpack.Value, field string) ([]byte, bool) {
	s, ok := t.required(v, field)
	return s, ok && t.short(s, field)
}

func (t *turn) short(s []byte, field string) bool {
	if len(s) > wire.MaxIdentifier {
		return t.bad(field, " exceeds 1024 bytes")
	}
	return true
}

// text is an optional string; absent, nil and empty are nil.
func (t *turn) text(v *mpack.Value, field string) ([]byte, bool) {
	switch v.Kind {
	case mpack.Absent, mpack.Nil:
		return nil, true
	case mpack.Str:
		if len(v.Data) == 0 {
			return nil, true
		}
		return v.Data, true
	}
	return nil, t.bad(field, " must be a string")
}

// optionalID is text of at most wire.MaxIdentifier bytes.
func (t *turn) optionalID(v *mpack.Value, field string) ([]byte, bool) {
	s, ok := t.text(v, field)
	return s, ok && t.short(s, field)
}

// origin is the three optional identifiers of the origin of something.
func (t *turn) origin(v []mpack.Value) (request, user, session []byte, ok bool) {
	if request, ok = t.optionalID(&v[0], "request_id"); !ok {
		return nil, nil, nil, false
	}
	if user, ok = t.optionalID(&v[1], "user_id"); !ok {
		return nil, nil, nil, false
	}
	session, ok = t.optionalID(&v[2], "session_id")
	return request, user, session, ok
}

// flag is an optional boolean.
func (t *turn) flag(v *mpack.Value, field string, def bool) (value, ok bool) {
	switch v.Kind {
	case mpack.Absent, mpack.Nil:
		return def, true
	case mpack.Bool:
		return v.Int != 0, true
	}
	return false, t.bad(field, " must be a boolean")
}

// counter is an optional integer in 0..limit; absent and nil are 0. class is "i32" or "i64".
func (t *turn) counter(v *mpack.Value, field string, limit int64, class string) (n int64, ok bool) {
	switch {
	case v.Kind == mpack.Int && v.Int >= 0 && v.Int <= limit:
		return v.Int, true
	case v.Kind == mpack.Absent || v.Kind == mpack.Nil:
		return 0, true
	case v.Kind == mpack.Int && v.Int < 0:
		t.bad(field, " must be non-negative, got ")
		t.msg = strconv.AppendInt(t.msg, v.Int, 10)
	case v.Kind == mpack.Int || v.Kind == mpack.BigUint:
		t.bad(field, " value ")
		t.msg = strconv.AppendUint(t.msg, uint64(v.Int), 10)
		t.msg = append(append(append(t.msg, " exceeds "...), class...), " range"...)
	default:
		t.bad(field, " must be an integer")
	}
	return 0, false
}

// i32 and i64 are small enough to be inlined; what is not plainly in order goes to counter.
func (t *turn) i32(v *mpack.Value, field string) (int64, bool) {
	if v.Kind == mpack.Int && uint64(v.Int) <= math.MaxInt32 {
		return v.Int, true
	}
	return t.counter(v, field, math.MaxInt32, "i32")
}

func (t *turn) i64(v *mpack.Value, field string) (int64, bool) {
	if v.Kind == mpack.Int && v.Int >= 0 {
		return v.Int, true
	}
	return t.counter(v, field, math.MaxInt64, "i64")
}
