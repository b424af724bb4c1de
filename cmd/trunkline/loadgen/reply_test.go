package loadgen

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
)

// replyFrame is a frame as a server writes it.
func replyFrame(kind frame.Type, payload []byte) []byte { return frame.Append(nil, kind, payload, nil) }

func idOf(n uint64) []byte {
	id := make([]byte, idWidth)
	putHex(id, n)
	return id
}

func answer(id uint64) []byte {
	return replyFrame(frame.Response, append(mpack.AppendResponseHead(nil, idOf(id)), 0x80))
}

func refusal(id []byte, code string) []byte {
	return replyFrame(frame.Error, mpack.AppendError(nil, id, code, "no", mpack.Extras{Retryable: true}))
}

// show is a reply in a line.
func show(r *reply) string {
	var words []string
	for _, w := range []struct {
		is   bool
		word string
	}{{r.ok, "ok"}, {r.none, "none"}, {r.stray, "stray"}, {r.final, "final"}, {r.hasID, fmt.Sprintf("id=%x", r.id)}, {r.code != nil, string(r.code)}} {
		if w.is {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, " ")
}

// replies reads a stream that arrives in two pieces, cut at every place.
func replies(t *testing.T, protocol, stream string, ended bool) (got []string, err error) {
	t.Helper()
	for cut := 0; cut <= len(stream); cut++ {
		d := newDialect(protocol)
		var now []string
		var r reply
		used := 0
		err = nil
		for _, have := range []int{cut, len(stream)} {
			for used < have && err == nil {
				var n, need int
				n, need, err = d.next([]byte(stream[used:have]), false, &r)
				if n == 0 && err == nil && need <= have-used {
					t.Fatalf("cut %d: at %d of %d it needs %d", cut, used, have, need)
				}
				if n == 0 || err != nil {
					break
				}
				now = append(now, show(&r))
				used += n
			}
		}
		if ended && err == nil && used < len(stream) {
			var n int
			if n, _, err = d.next([]byte(stream[used:]), true, &r); n > 0 {
				now = append(now, show(&r))
			}
		}
		if cut > 0 && strings.Join(now, "|") != strings.Join(got, "|") {
			t.Fatalf("cut at %d: %q, before %q", cut, now, got)
		}
		got = now
	}
	return got, err
}

func wantReplies(t *testing.T) func(protocol, stream string, want ...string) {
	return func(protocol, stream string, want ...string) {
		t.Helper()
		got, err := replies(t, protocol, stream, true)
		if err != nil {
			got = append(got, err.Error())
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%q: %q, want %q", stream, got, want)
		}
	}
}

func TestFrames(t *testing.T) {
	f := func(stream []byte, want ...string) {
		t.Helper()
		wantReplies(t)(ProtocolKernel, string(stream), want...)
	}
	f(append(answer(0xabc), answer(0)...), "ok id=abc", "ok id=0")
	f(refusal(idOf(7), "NOT_FOUND"), "id=7 NOT_FOUND")
	f(refusal(nil, "RESOURCE_EXHAUSTED"), "stray RESOURCE_EXHAUSTED")
	f(refusal([]byte("not ours"), "INTERNAL"), "stray INTERNAL")
	f(refusal(idOf(7), strings.Repeat("X", 100)), "id=7 "+strings.Repeat("X", maxCode))
	f(replyFrame(frame.Error, []byte("\x81\xa2id\xacaaaaaaaaaaaa")), "id=aaaaaaaaaaaa error without code")
	f(replyFrame(frame.Error, []byte("\x82\xa2id\xacaaaaaaaaaaaa\xa5error\x05")), "id=aaaaaaaaaaaa error without code")
	// Members in another order, and ones we do not know.
	f(replyFrame(frame.Response, []byte("\x84\xa4body\x80\xa1x\xc0\xa2ok\xc3\xa2id\xd9\x0c00000000000f")), "ok id=f")
	f(append(replyFrame(frame.StreamChunk, []byte("\x80")), answer(1)...), "none", "ok id=1")
	f(replyFrame(frame.Request, []byte("\x80")), errMalformed.Error())
	f(replyFrame(frame.Response, []byte("\xc0")), errMalformed.Error())
	f(replyFrame(frame.Response, []byte("\x82\xa2id")), errMalformed.Error())
	f(replyFrame(frame.Response, nil), errMalformed.Error())
	f([]byte{0, 0, 0, 0, 0}, errMalformed.Error())
	f(binary.BigEndian.AppendUint32(nil, maxReply+1), errMalformed.Error())
	f(binary.BigEndian.AppendUint32(nil, maxReply))
}

func TestLines(t *testing.T) {
	f := func(stream string, want ...string) {
		t.Helper()
		wantReplies(t)(ProtocolToolhost, stream, want...)
	}
	f("{\"ok\":true,\"status\":\"OK\"}\n{\"ok\": true, \"x\":1}\r\n", "ok", "ok")
	f("{\"x\":{\"ok\":false},\"ok\":true}\n", "ok")
	f("{\"ok\":false,\"status\":\"TOOL_ERROR\",\"error\":\"missing path\"}\n", "TOOL_ERROR")
	f("{\"ok\":false,\"error\":\"tool not found: AID.X.v1\"}\n", "tool not found")
	f("{\"ok\":false}\n", "error without code")
	f("{}\n", "error without code")
	f("{\"ok\":true}", "ok") // the last line needs no end
	f("nope\n", errMalformed.Error())
	f("[]\n", errMalformed.Error())
	f("nope")
}

func TestNumberedLines(t *testing.T) {
	f := func(stream string, want ...string) {
		t.Helper()
		wantReplies(t)(ProtocolThreads, stream, want...)
	}
	const id = "\"id\":\"00000000000f\""
	f("{"+id+",\"ok\":true,\"result\":{}}\n{"+id+",\"ok\":true}\r\n", "ok id=f", "ok id=f")
	f("{\"ok\": true, \"result\":{\"id\":7}, "+id+"}\n", "ok id=f")
	f("{"+id+",\"ok\":false,\"error\":{\"message\":\"no\",\"code\":\"NOT_FOUND\"}}\n", "id=f NOT_FOUND")
	f("{"+id+",\"ok\":false,\"error\":{\"code\":\""+strings.Repeat("X", 100)+"\"}}\n", "id=f "+strings.Repeat("X", maxCode))
	f("{"+id+",\"ok\":false,\"error\":{\"code\":\"\"}}\n{"+id+"}\n", "id=f error without code", "id=f error without code")
	f("{\"id\":null,\"ok\":false,\"error\":{\"code\":\"VALIDATION_ERROR\"}}\n", "stray VALIDATION_ERROR")
	f("{\"id\":\"not of this run\",\"ok\":true,\"result\":{}}\n", "ok stray")
	f("{\"id\":15,\"ok\":true,\"result\":{}}\n", "ok stray")
	f("{"+id+",\"ok\":true,\"result\"", []string(nil)...)
	f("nope\n", errMalformed.Error())
}

func TestResponses(t *testing.T) {
	f := func(stream string, want ...string) {
		t.Helper()
		wantReplies(t)(ProtocolHTTP, strings.ReplaceAll(stream, "\n", "\r\n"), want...)
	}
	const ok = "HTTP/1.1 200 OK\nContent-Length: 2\n\n{}"
	f(ok+ok, "ok", "ok")
	f("HTTP/1.1 503 Busy\ncontent-length:0\nRetry-After: 1\n\n"+ok, "HTTP 503", "ok")
	f("HTTP/1.1 100 Continue\n\n"+ok, "none HTTP 100", "ok")
	f("HTTP/1.1 204 No Content\n\n"+ok, "ok", "ok")
	f("HTTP/1.1 200 OK\nTransfer-Encoding: CHUNKED\n\n3;x=y\nabc\nA\n0123456789\n0\nTrailer: x\n\n"+ok, "ok", "ok")
	f("HTTP/1.1 200 OK\nConnection: close\nContent-Length: 1\n\nx", "ok final")
	f("HTTP/1.0 200 OK\nContent-Length: 1\n\nx", "ok final")
	f("HTTP/1.0 200 OK\nConnection: Keep-Alive\nContent-Length: 1\n\nx"+ok, "ok", "ok")
	f("HTTP/1.1 200 OK\n\nuntil the end", "ok final")
	f("HTTP/1.1 413 Large\n\n", "final HTTP 413")
	f("HTTP/1.1 200 OK\nContent-Length: 5\n\nshor")
	f("HTTP/2 200 OK\n\n", errMalformed.Error())
	f("HTTP/1.1 2x0 OK\n\n", errMalformed.Error())
	f("HTTP/1.1 200 OK\nContent-Length: -1\n\n", errMalformed.Error())
	f("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nzz\n", errMalformed.Error())
	f("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n1000001\n", errTooLarge.Error())
	f("HTTP/1.1 200 OK\nContent-Length: 16777216\n\n", errTooLarge.Error())
}

func TestLimitOfAHeader(t *testing.T) {
	f := func(n int, want error) {
		t.Helper()
		var r reply
		if got, _, err := newDialect(ProtocolHTTP).next([]byte("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", n-20)), false, &r); got != 0 || err != want {
			t.Errorf("%d bytes: %d %v", n, got, err)
		}
	}
	f(maxHeader, nil)
	f(maxHeader+1, errTooLarge)
}

func TestLimitOfAReply(t *testing.T) {
	f := func(have, need, size int, want error) {
		t.Helper()
		buf, err := resize(make([]byte, size), have, need)
		if err != want || err == nil && len(buf) < max(need, have+1) {
			t.Errorf("%d of %d in %d: %d %v", have, need, size, len(buf), err)
		}
	}
	f(0, 5, 4096, nil)
	f(4096, 4097, 4096, nil)
	f(10, maxReply, 4096, nil)
	f(10, maxReply+1, 4096, errTooLarge)
	f(maxReply-1, maxReply, maxReply, nil)
	f(maxReply, 0, maxReply, errTooLarge)
	f(0, 0, keptBuffer+1, nil)
	if buf, _ := resize(make([]byte, 1<<20), 0, 0); len(buf) != keptBuffer {
		t.Errorf("an empty buffer keeps %d bytes", len(buf))
	}
}

func fuzzDialect(f *testing.F, protocol string) {
	f.Fuzz(func(t *testing.T, in []byte) {
		d := newDialect(protocol)
		var r reply
		for len(in) > 0 {
			n, need, err := d.next(in, false, &r)
			if err != nil {
				return
			}
			if n < 0 || n > len(in) || n == 0 && need <= len(in) || len(r.code) > maxCode {
				t.Fatalf("%d of %d, need %d, code %q", n, len(in), need, r.code)
			}
			if n == 0 {
				_, _, _ = d.next(in, true, &r)
				return
			}
			in = in[n:]
		}
	})
}

func FuzzFrames(f *testing.F) {
	f.Add(append(answer(0xabc), refusal(idOf(7), "NOT_FOUND")...))
	f.Add(replyFrame(frame.StreamEnd, []byte("\x80")))
	fuzzDialect(f, ProtocolKernel)
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("{\"ok\":true}\n{\"ok\":false,\"error\":\"x: y\"}\r\n"))
	fuzzDialect(f, ProtocolToolhost)
}

func FuzzNumberedLines(f *testing.F) {
	f.Add([]byte("{\"id\":\"00000000000f\",\"ok\":true,\"result\":{}}\n{\"id\":null,\"ok\":false,\"error\":{\"code\":\"X\"}}\r\n"))
	fuzzDialect(f, ProtocolThreads)
}

func FuzzResponses(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 100 Go on\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nT: x\r\n\r\n"))
	fuzzDialect(f, ProtocolHTTP)
}
