package questions

// Question: what does an envelope that comes as JSON text inside a MessagePack request cost more
// than one that comes encoded?

import (
	"fmt"
	"testing"

	"trunkline/codec/transcode"
	"trunkline/engine/envelope"
)

func BenchmarkEnvelopeTranscode(b *testing.B) { measure(b, transcodes()) }

func transcodes() []question {
	var all []question
	for _, size := range []int{200, 4 << 10, 64 << 10} {
		text := flatEnvelope("e", size, false)
		all = append(all, question{name: fmt.Sprintf("json/size=%d", size), prepare: func(tb testing.TB) work {
			src := []byte(text)
			dst := transcode.AppendMsgPack(nil, src)
			if string(dst) != string(encode(tb, text)) {
				tb.Fatalf("not what the client makes of it: %x", dst)
			}
			return work{run: func() { dst = transcode.AppendMsgPack(dst[:0], src) }, bytes: len(src)}
		}}, question{name: fmt.Sprintf("encoded/size=%d", size), free: true, prepare: func(tb testing.TB) work {
			return decodeWork(tb, encode(tb, text))
		}})
	}
	return all
}

// decodeWork reads an envelope that came encoded and writes it, as a session does with its own.
func decodeWork(tb testing.TB, src []byte) work {
	var e envelope.Env
	var dst []byte
	run := func() *envelope.Problem {
		p := e.Decode(envelope.MsgPack, src)
		if p == nil {
			dst = e.Append(dst[:0])
		}
		return p
	}
	if p := run(); p != nil {
		tb.Fatal(p.Message())
	}
	if len(dst) < len(src) {
		tb.Fatalf("wrote %d bytes of %d", len(dst), len(src))
	}
	return work{run: func() { run() }, bytes: len(src)}
}
