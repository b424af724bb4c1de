package fuzz

import (
	"fmt"
	"math"
	"strings"
)

// head4 is a request as far as it could be read (kernel-ipc §3.1).
type head4 struct {
	isMap               bool
	id, service, method string // "" when absent or of another type
	body                object
	hasBody, otherBody  bool
	other               map[string]bool // members that are to be strings and are not, nor nil
	fault               bool            // not MessagePack of the profile; the rest is what came before
}

func readRequest(payload []byte) (h head4) {
	r := reader{b: payload}
	first, err := r.uint(1)
	var n uint64
	switch {
	case err != nil:
		h.fault = true
		return h
	case first >= 0x80 && first <= 0x8f:
		n = first & 15
	case first == 0xde || first == 0xdf:
		n, err = r.uint(2 << (first - 0xde))
	default:
		_, err = decode(payload)
		h.fault = err != nil
		return h
	}
	h.isMap = true
	if err == nil {
		err = r.members(n, 1, h.member)
	}
	h.fault = err != nil || r.i != len(payload)
	return h
}

func (h *head4) member(key string, v any) {
	s, ok := v.(string)
	if h.other == nil {
		h.other = map[string]bool{}
	}
	h.other[key] = !ok && v != nil
	switch key {
	case "id":
		h.id = s
	case "service":
		h.service = s
	case "method":
		h.method = s
	case "body":
		h.body, h.hasBody = v.(object)
		h.otherBody = !h.hasBody && v != nil
	}
}

// accept makes the checks of kernel-ipc §3.1 in their order.
func (k *call) accept(h head4) bool {
	if len(h.id) <= 1024 {
		k.id = h.id
	}
	switch {
	case h.fault:
		k.bad = &refusal{code: "INVALID_ARGUMENT", message: beginning("Invalid msgpack: ")}
	case h.other["id"]:
		k.refuse("INVALID_ARGUMENT", "Invalid request field: id must be a string")
	case h.id == "":
		k.refuse("INVALID_ARGUMENT", "Missing required request field: id")
	case len(h.id) > 1024:
		k.refuse("INVALID_ARGUMENT", "Invalid request field: id exceeds 1024 bytes")
	case h.other["service"]:
		k.refuse("INVALID_ARGUMENT", "Invalid request field: service must be a string")
	case h.service == "":
		k.refuse("INVALID_ARGUMENT", "Missing required request field: service")
	case h.other["method"]:
		k.refuse("INVALID_ARGUMENT", "Invalid request field: method must be a string")
	case h.method == "":
		k.refuse("INVALID_ARGUMENT", "Missing required request field: method")
	case h.otherBody:
		k.refuse("INVALID_ARGUMENT", "Invalid request field: body must be an object")
	case !h.hasBody:
		k.refuse("INVALID_ARGUMENT", "Missing required request field: body")
	}
	return k.bad == nil
}

// args reads the fields of a body by the typing rules of kernel-ipc §3.4. The first failure is
// kept; after it, everything reads as absent.
type args struct {
	body object
	bad  *refusal
}

func (a *args) refuse(code, format string, v ...any) {
	if a.bad == nil {
		a.bad = refuse(code, format, v...)
	}
}

func (a *args) invalid(format string, v ...any) { a.refuse("INVALID_ARGUMENT", format, v...) }

// field returns nil also for what is absent.
func (a *args) field(name string) any {
	if a.bad != nil {
		return nil
	}
	v, _ := a.body.get(name)
	return v
}

func (a *args) required(name string) string {
	s, ok := a.field(name).(string)
	if !ok {
		a.invalid("Missing required field: %s", name)
	} else if s == "" {
		a.invalid("%s cannot be empty", name)
	}
	return s
}

func (a *args) short(name, s string) string {
	if len(s) > 1024 {
		a.invalid("%s exceeds 1024 bytes", name)
	}
	return s
}

func (a *args) requiredID(name string) string { return a.short(name, a.required(name)) }

func (a *args) text(name string) string {
	v := a.field(name)
	s, ok := v.(string)
	if !ok && v != nil {
		a.invalid("%s must be a string", name)
	}
	return s
}

func (a *args) optionalID(name string) string { return a.short(name, a.text(name)) }

func (a *args) flag(name string, def bool) bool {
	v := a.field(name)
	if v == nil {
		return def
	}
	b, ok := v.(bool)
	if !ok {
		a.invalid("%s must be a boolean", name)
	}
	return b
}

func (a *args) counter(name string, limit int64, class string) int64 {
	switch v := a.field(name).(type) {
	case nil:
	case int64:
		if v < 0 {
			a.invalid("%s must be non-negative, got %d", name, v)
		} else if v > limit {
			a.invalid("%s value %d exceeds %s range", name, v, class)
		} else {
			return v
		}
	case uint64:
		a.invalid("%s value %d exceeds %s range", name, v, class)
	default:
		a.invalid("%s must be an integer", name)
	}
	return 0
}

func (a *args) i32(name string) int64 { return a.counter(name, math.MaxInt32, "i32") }

func (a *args) i64(name string) int64 { return a.counter(name, math.MaxInt64, "i64") }

// json is an optional string of JSON text.
func (a *args) json(name, def string) string {
	v := a.field(name)
	if v == nil {
		return def
	}
	s, ok := v.(string)
	if !ok {
		a.invalid("%s must be a string", name)
	} else if s = strings.TrimPrefix(s, byteOrderMark); !validJSON(s) && a.bad == nil {
		a.bad = &refusal{code: "INVALID_ARGUMENT", message: beginning(fmt.Sprintf("Invalid JSON %s: ", name))}
	}
	return s
}

// types is a required array of names; duplicates count once.
func (a *args) types(name string, most int) (types []string) {
	list, ok := a.field(name).([]any)
	if !ok || len(list) == 0 {
		a.invalid("%s is required (non-empty array)", name)
	}
	return a.names(name, list, most, func(string) bool { return true })
}

func (a *args) names(name string, list []any, most int, valid func(string) bool) (names []string) {
	seen := map[string]bool{}
	for i, e := range list {
		s, ok := e.(string)
		if !ok || s == "" {
			a.invalid("%s[%d] must be a non-empty string", name, i)
		} else if len(s) > 1024 {
			a.invalid("%s[%d] exceeds 1024 bytes", name, i)
		} else if !valid(s) {
			a.invalid("%s[%d] is no pattern: * and > are whole tokens, > the last one, of at most 32", name, i)
		} else if !seen[s] {
			seen[s] = true
			if names = append(names, s); len(names) > most {
				a.invalid("too many %s", name)
			}
		}
	}
	return names
}
