package fuzz

import (
	"bytes"
	"strings"
)

// requests are hand-written payloads for FuzzRequestBytes, one or more per method and one per rule
// of kernel-ipc §3.1–3.4.
func requests() (list [][]byte) {
	add := func(v any) { list = append(list, appendValue(nil, v, nil)) }
	full := func(service, method string, body any) object {
		return object{{"id", "x"}, {"service", service}, {"method", method}, {"body", body}}
	}
	for i := range sentences {
		s := &sentences[i]
		for _, wrong := range []bool{false, true} {
			body := object{}
			for _, f := range s.fields {
				values := f.good
				if wrong && len(f.wrong) > 0 {
					values = f.wrong
				}
				for _, v := range values {
					if _, no := v.(absent); !no {
						body = append(body, membersOf(f.name, plain(v))...)
						break
					}
				}
			}
			add(full(s.service, s.method, body))
		}
	}
	add(nil)
	add([]any{1, "id"})
	add(object{{"id", "x"}, {"service", "kernel"}, {"method", "GetProcess"}, {"body", encoded("\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00")}})
	add(object{{"id", "x"}, {"id", 5}, {"service", "kernel"}, {"body", encoded("\xc1")}})
	add(object{{"id", strings.Repeat("i", 1025)}, {"service", "kernel"}, {"method", "GetProcess"}, {"body", object{}}})
	add(full("kernel", "ListProcesses", object{{"cursor", 1}, {"limit", 1}}))
	add(full("commbus", "Query", object{{"query_type", "sum"}, {"timeout_ms", uint64(1 << 63)}}))
	add(full("commbus", "Unsubscribe", object{{"stream_id", "x"}, {"subscriber_id", ""}}))
	deep := func(n int) encoded { return encoded(strings.Repeat("\x91", n) + "\xc0") }
	add(full("kernel", "GetProcess", object{{"x", deep(510)}}))
	add(full("kernel", "GetProcess", object{{"x", deep(511)}}))
	list = append(list, nil, []byte("\xc1"), []byte("\x84\xa2id\xa1x\xa7service"), []byte("\xdf\xff\xff\xff\xff\xa2id\xa1x"),
		[]byte("\x81\xa2id\xa1\xff"), []byte("\x82\xa2id\xa1x\x01\x02"))
	return list
}

// membersOf are what a field adds to a body.
func membersOf(name string, v any) object {
	if name == theBody {
		return v.(object)
	}
	return object{{name, v}}
}

// plain replaces the names that only a running server can know.
func plain(v any) any {
	switch v := v.(type) {
	case lastCursor:
		return 0
	case lastQuery:
		return "q1"
	case lastEnvelope:
		return "e1"
	case object:
		o := make(object, len(v))
		for i, m := range v {
			o[i] = member{m.key, plain(m.val)}
		}
		return o
	}
	return v
}

type framed struct {
	limit byte // as in FuzzFrames
	bytes []byte
}

// streams are hand-written inputs of FuzzFrames.
func streams() []framed {
	all := requests()
	frames := func(payloads ...[]byte) (b []byte) {
		for _, p := range payloads {
			b = appendFrame(b, request, p)
		}
		return b
	}
	small := func(max int) (list [][]byte) {
		for _, p := range all {
			if len(p) < max {
				list = append(list, p)
			}
		}
		return list
	}
	fill := func(n int) []byte { return bytes.Repeat([]byte{0xc0}, n) }
	status := appendValue(nil, object{{"id", "x"}, {"service", "kernel"}, {"method", "GetSystemStatus"}, {"body", object{}}}, nil)
	return []framed{
		{0, frames(all...)},
		{1, frames(small(3000)...)},
		{2, frames(small(200)[:20]...)},
		{2, frames(small(200)[20:40]...)},
		{2, append(frames(status, fill(699), status), frames(fill(700))...)}, // at the limit, and beyond
		{2, append(frames(status), 0, 0, 0, 0, 1)},
		{2, append(frames(status), 0, 0, 0, 100, 1, 2, 3)},
		{2, appendFrame(appendFrame(frames(status), 0x02, status), 0xFF, nil)},
		{2, frames(status, nil, nil, status)},
		{3, frames(fill(10), fill(63), fill(64))},
		{0, append(frames(status), 0xff, 0xff, 0xff, 0xff)},
		{1, []byte{0, 0, 0x10}},
	}
}

// texts are hand-written inputs of FuzzJSONPayload.
func texts() []string {
	return []string{
		``, ` `, `{}`, `{"n":1}`, ` [1, 2.50, -0, -0.0, 1e2, 1E-400, 1e400] `, `[9223372036854775807,9223372036854775808,18446744073709551615,18446744073709551616,-9223372036854775808,-9223372036854775809]`,
		`"\ud83d\ude00\ud800\u0041\udc00é\/\b\f\n"`, "\"\x7f\u2028\"", "\"\x01\"", "\"\xff\"", `{"a":1,"a":{"b":[],"b":2}}`, `nul`, `[1,]`, `01`, "\ufeff{}",
		`{"a" : [ true , false , null ] }`, strings.Repeat("[", 128) + strings.Repeat("]", 128), strings.Repeat("[", 129) + strings.Repeat("]", 129),
		`"]]]]{{{"`, `1 2`, `-`, `"\x"`, `"\u12"`, `{"a":1,}`, `"` + strings.Repeat("é", 3000) + `"`, "\t1\r\n", "\v1",
	}
}
