package journaltool

import (
	"encoding/base64"
	"strconv"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/codec/transcode"
)

// object appends the members of a JSON object.
type object struct{ b []byte }

func openObject(dst []byte) object { return object{append(dst, '{')} }

func (o *object) key(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(jsonx.AppendString(o.b, name), ':')
}

func (o *object) close() []byte { return append(o.b, '}') }

func (o *object) uint(name string, v uint64) {
	o.key(name)
	o.b = strconv.AppendUint(o.b, v, 10)
}

func (o *object) int(name string, v int64) {
	o.key(name)
	o.b = strconv.AppendInt(o.b, v, 10)
}

func (o *object) bool(name string, v bool) {
	o.key(name)
	o.b = strconv.AppendBool(o.b, v)
}

func (o *object) null(name string) {
	o.key(name)
	o.b = append(o.b, "null"...)
}

func (o *object) text(name, v string) {
	o.key(name)
	o.b = jsonx.AppendString(o.b, v)
}

// bytes is text that is left out where there is none.
func (o *object) bytes(name string, v []byte) {
	if len(v) == 0 {
		return
	}
	o.key(name)
	o.b = jsonx.AppendString(o.b, v)
}

func (o *object) time(name string, t time.Time) {
	o.key(name)
	o.b = append(t.AppendFormat(append(o.b, '"'), time.RFC3339Nano), '"')
}

func (o *object) base64(name string, v []byte) {
	o.key(name)
	o.b = append(base64.StdEncoding.AppendEncode(append(o.b, '"'), v), '"')
}

// value is a MessagePack value as JSON; nothing where there is none, and base64 under another name
// where it has no form in JSON.
func (o *object) value(name string, raw []byte) {
	if raw == nil {
		return
	}
	start := len(o.b)
	o.key(name)
	b, err := transcode.AppendJSON(o.b, raw)
	if err == nil {
		o.b = b
		return
	}
	o.b = o.b[:start]
	o.base64(name+"_base64", raw)
}
