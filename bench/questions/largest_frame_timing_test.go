package questions

// Question: how long can the largest frame that is taken hold an event loop?

import (
	"strings"
	"testing"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
)

func BenchmarkLargestFrame(b *testing.B) {
	const room = 5<<20 - 300
	array := func(element string, n int, tail string) []byte {
		body := mpack.AppendArray(mpack.AppendStr(mpack.AppendMap(nil, 1), "x"), n)
		return append(append(body, strings.Repeat(element, n)...), tail...)
	}
	text := func(json string) []byte {
		body := mpack.AppendStr(mpack.AppendStr(mpack.AppendMap(nil, 2), "event_type"), "a")
		return mpack.AppendStr(mpack.AppendStr(body, "payload"), json)
	}
	largest := func(name, service, method string, want frame.Type, body []byte) question {
		return question{name: name, prepare: func(tb testing.TB) work {
			p := newRig(tb, nil).connect()
			payload := mpack.AppendRequest(nil, []byte("i"), []byte(service), []byte(method), body)
			in := frame.Append(nil, frame.Request, payload, nil)
			p.feed(in)
			if typ, reply, n := frame.Split(p.out, 1<<20); typ != want || n != len(p.out) {
				tb.Fatalf("answered by a frame of type %#x: %s", byte(typ), asJSON(tb, reply))
			}
			return work{run: func() { p.feed(in) }, bytes: len(in)}
		}}
	}
	measure(b, []question{
		largest("nils", "kernel", "GetQuotaDefaults", frame.Response, array("\xc0", room, "")),
		largest("nils-then-a-fault", "kernel", "GetQuotaDefaults", frame.Error, array("\xc0", room, "\xc1")),
		largest("empty-arrays", "kernel", "GetQuotaDefaults", frame.Response, array("\x90", room, "")),
		largest("short-strings", "kernel", "GetQuotaDefaults", frame.Response, array("\xa1a", room/2, "")),
		largest("JSON-numbers", "commbus", "Publish", frame.Response, text("["+strings.Repeat("1,", room/2)+"1]")),
		largest("JSON-brackets", "commbus", "Publish", frame.Response, text("["+strings.Repeat("[],", room/3)+"1]")),
	})
}
