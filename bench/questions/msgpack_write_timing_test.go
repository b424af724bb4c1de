package questions

// Question: what does writing a process as a reply cost beside tinylib/msgp, appended member by
// member and from a map?

import (
	"bytes"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/mpack"
)

func BenchmarkMessagePackWrite(b *testing.B) { measure(b, messagePackWrites()) }

func messagePackWrites() []question {
	id, p := []byte("00000001"), &mpack.Process{PID: []byte(uuid('p', 1)), RequestID: []byte(uuid('q', 1)), UserID: []byte(uuid('u', 1)),
		SessionID: []byte(uuid('s', 1)), State: "RUNNING", Priority: "NORMAL", Usage: mpack.Usage{3, 0, 0, 4000, 1000}}
	trunkline := func(dst []byte) []byte { return mpack.AppendProcess(mpack.AppendResponseHead(dst, id), p) }
	members, reply := replyMembers(id, p), replyMap(id, p)
	writes := func(codec string, free bool, write func(dst []byte) []byte) question {
		return question{name: "codec=" + codec, free: free, prepare: func(tb testing.TB) work {
			dst := write(nil)
			if want := trunkline(nil); len(dst) != len(want) || !sameValue(tb, dst, want) {
				tb.Fatalf("wrote %s, want %s", asJSON(tb, dst), asJSON(tb, want))
			}
			return work{run: func() { dst = write(dst[:0]) }, bytes: len(dst)}
		}}
	}
	return []question{
		writes("trunkline", true, trunkline),
		writes("msgp-append", true, members),
		writes("msgp-map", false, func(dst []byte) []byte { dst, _ = msgp.AppendIntf(dst, reply); return dst }),
	}
}

// sameValue compares two encodings, whatever the order of their members.
func sameValue(tb testing.TB, a, b []byte) bool {
	tb.Helper()
	var sorted [2][]byte
	for i, in := range [][]byte{a, b} {
		m, _, err := msgp.ReadMapStrIntfBytes(in, nil)
		if err != nil {
			tb.Fatal(err)
		}
		sorted[i] = marshal(tb, m)
	}
	return bytes.Equal(sorted[0], sorted[1])
}

// replyMembers appends with the library what AppendProcess does.
func replyMembers(id []byte, p *mpack.Process) func([]byte) []byte {
	return func(dst []byte) []byte {
		dst = msgp.AppendStringFromBytes(msgp.AppendString(msgp.AppendMapHeader(dst, 3), "id"), id)
		dst = msgp.AppendBool(msgp.AppendString(dst, "ok"), true)
		dst = msgp.AppendMapHeader(msgp.AppendString(dst, "body"), 8)
		dst = msgp.AppendStringFromBytes(msgp.AppendString(dst, "pid"), p.PID)
		dst = msgp.AppendStringFromBytes(msgp.AppendString(dst, "request_id"), p.RequestID)
		dst = msgp.AppendStringFromBytes(msgp.AppendString(dst, "user_id"), p.UserID)
		dst = msgp.AppendStringFromBytes(msgp.AppendString(dst, "session_id"), p.SessionID)
		dst = msgp.AppendString(msgp.AppendString(dst, "state"), p.State)
		dst = msgp.AppendString(msgp.AppendString(dst, "priority"), p.Priority)
		dst = msgp.AppendMapHeader(msgp.AppendString(dst, "usage"), 5)
		dst = msgp.AppendInt64(msgp.AppendString(dst, "llm_calls"), p.Usage[0])
		dst = msgp.AppendInt64(msgp.AppendString(dst, "tool_calls"), p.Usage[1])
		dst = msgp.AppendInt64(msgp.AppendString(dst, "agent_hops"), p.Usage[2])
		dst = msgp.AppendInt64(msgp.AppendString(dst, "tokens_in"), p.Usage[3])
		dst = msgp.AppendInt64(msgp.AppendString(dst, "tokens_out"), p.Usage[4])
		return msgp.AppendString(msgp.AppendString(dst, "current_stage"), p.CurrentStage)
	}
}

// replyMap is the same reply as a map.
func replyMap(id []byte, p *mpack.Process) map[string]any {
	return map[string]any{"id": string(id), "ok": true, "body": map[string]any{
		"pid": string(p.PID), "request_id": string(p.RequestID), "user_id": string(p.UserID), "session_id": string(p.SessionID),
		"state": p.State, "priority": p.Priority, "current_stage": p.CurrentStage,
		"usage": map[string]any{"llm_calls": p.Usage[0], "tool_calls": p.Usage[1], "agent_hops": p.Usage[2],
			"tokens_in": p.Usage[3], "tokens_out": p.Usage[4]},
	}}
}
