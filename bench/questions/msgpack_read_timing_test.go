package questions

// Question: what does reading a request cost beside tinylib/msgp, as a loop over its members
// written by hand and decoded into a map, which is what people write first?

import (
	"bytes"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/mpack"
)

func BenchmarkMessagePackRead(b *testing.B) { measure(b, messagePackReads()) }

func messagePackReads() []question {
	body := `{"pid":"00000000-0000-4000-8000-000000000001"}`
	reads := func(codec string, free bool, read func(payload []byte) []byte) question {
		return question{name: "codec=" + codec, free: free, prepare: func(tb testing.TB) work {
			payload := payloadOf(tb, body)
			if pid := read(payload); !bytes.Equal(pid, []byte("00000000-0000-4000-8000-000000000001")) {
				tb.Fatalf("pid %q", pid)
			}
			return work{run: func() { read(payload) }, bytes: len(payload)}
		}}
	}
	return []question{
		reads("trunkline", true, readView()),
		reads("msgp-loop", true, readLoop),
		reads("msgp-map", false, readMap),
	}
}

// readView finds the pid as a session does: all of a request is checked, the usual order of its
// members is tried first.
func readView() func([]byte) []byte {
	var r mpack.Request
	var sc mpack.Scanner
	fields, values := mpack.Fields("pid"), make([]mpack.Value, 1)
	return func(payload []byte) []byte {
		if at, ok := mpack.ParseHead(payload, &r); ok {
			if end, p := sc.ParseFields(payload, at, fields, values); p == mpack.NoProblem && end == len(payload) {
				return values[0].Data
			}
		}
		if sc.ParseRequest(payload, &r) != mpack.NoProblem {
			return nil
		}
		if _, p := sc.ParseFields(r.Body, 0, fields, values); p != mpack.NoProblem {
			return nil
		}
		return values[0].Data
	}
}

// readLoop steps over the members and copies nothing.
func readLoop(payload []byte) (pid []byte) {
	n, rest, err := msgp.ReadMapHeaderBytes(payload)
	for ; n > 0 && err == nil; n-- {
		var key []byte
		if key, rest, err = msgp.ReadMapKeyZC(rest); err != nil {
			break
		}
		switch string(key) {
		case "id", "service", "method":
			_, rest, err = msgp.ReadStringZC(rest)
		case "body":
			pid, rest, err = readBody(rest)
		default:
			rest, err = msgp.Skip(rest)
		}
	}
	if err != nil || len(rest) > 0 {
		return nil
	}
	return pid
}

func readBody(body []byte) (pid, rest []byte, err error) {
	n, rest, err := msgp.ReadMapHeaderBytes(body)
	for ; n > 0 && err == nil; n-- {
		var key []byte
		if key, rest, err = msgp.ReadMapKeyZC(rest); err != nil {
			break
		}
		if string(key) == "pid" {
			pid, rest, err = msgp.ReadStringZC(rest)
		} else {
			rest, err = msgp.Skip(rest)
		}
	}
	return pid, rest, err
}

func readMap(payload []byte) []byte {
	m, rest, err := msgp.ReadMapStrIntfBytes(payload, nil)
	if err != nil || len(rest) > 0 {
		return nil
	}
	body, _ := m["body"].(map[string]any)
	pid, _ := body["pid"].(string)
	return []byte(pid)
}
