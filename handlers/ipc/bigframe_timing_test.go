package ipc

import (
	"bytes"
	"testing"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
)

// How long can the largest frame hold an event loop?
func BenchmarkLargestFrame(b *testing.B) {
	const room = 5<<20 - 300
	fields := func(text string, n int, tail string) []byte {
		body := mpack.AppendArray(mpack.AppendStr(mpack.AppendMap(nil, 1), "x"), n)
		body = append(body, bytes.Repeat([]byte(text), n)...)
		return append(body, tail...)
	}
	payload := func(text string) []byte {
		body := mpack.AppendStr(mpack.AppendStr(mpack.AppendMap(nil, 2), "event_type"), "a")
		return mpack.AppendStr(mpack.AppendStr(body, "payload"), text)
	}
	for _, f := range []struct {
		name, service, method string
		body                  []byte
	}{
		{"nils", "kernel", "GetQuotaDefaults", fields("\xc0", room, "")},
		{"nils, then a fault", "kernel", "GetQuotaDefaults", fields("\xc0", room, "\xc1")},
		{"empty arrays", "kernel", "GetQuotaDefaults", fields("\x90", room, "")},
		{"short strings", "kernel", "GetQuotaDefaults", fields("\xa1a", room/2, "")},
		{"JSON numbers", "commbus", "Publish", payload("[" + string(bytes.Repeat([]byte("1,"), room/2)) + "1]")},
		{"JSON brackets", "commbus", "Publish", payload("[" + string(bytes.Repeat([]byte("[],"), room/3)) + "1]")},
	} {
		b.Run(f.name, func(b *testing.B) {
			p := newRig(b, Config{}).connect()
			payload := mpack.AppendRequest(nil, []byte("i"), []byte(f.service), []byte(f.method), f.body)
			in := frame.Append(nil, frame.Request, payload, nil)
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				p.out = p.out[:0]
				p.send(in)
			}
		})
	}
}
