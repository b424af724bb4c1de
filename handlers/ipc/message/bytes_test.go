package message

import (
	"math"
	"testing"

	"trunkline/codec/mpack"
)

// TestBytesAreOfTheProfile compares a generated codec with the appenders of the hot path, whose
// bytes the worked examples of kernel-ipc §9 give: every integer has its smallest class.
func TestBytesAreOfTheProfile(t *testing.T) {
	for _, n := range []int64{0, 127, 128, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64} {
		reply := Usage{LLMCalls: n, ToolCalls: n - 1, AgentHops: n / 2, TokensIn: n / 3, TokensOut: 1}
		got, err := reply.MarshalMsg(nil)
		want := mpack.AppendUsage(nil, &mpack.Usage{n, n - 1, n / 2, n / 3, 1})
		if err != nil || string(got) != string(want) {
			t.Errorf("%d: got %x, %v, want %x", n, got, err, want)
		}
	}
}

func TestBytesOfColdReplies(t *testing.T) {
	f := func(reply interface{ MarshalMsg([]byte) ([]byte, error) }, want string) {
		t.Helper()
		if got, err := reply.MarshalMsg([]byte(">")); err != nil || string(got) != ">"+want {
			t.Errorf("got  %q, %v\nwant %q", got, err, want)
		}
	}
	const states = "\x87\xa3NEW\x01\xa5READY\x02\xa7RUNNING\x03\xa7WAITING\xcc\x80\xa7BLOCKED\x00" +
		"\xaaTERMINATED\xcd\x01\x00\xa6ZOMBIE\x00"
	by := StateCounts{New: 1, Ready: 2, Running: 3, Waiting: 128, Terminated: 256}
	f(&Counts{CountsByState: by, Total: 70000, QueueDepth: 2},
		"\x83\xafcounts_by_state"+states+"\xa5total\xce\x00\x01\x11\x70\xabqueue_depth\x02")
	status := Status{Processes: ProcessStatus{Total: 390, ByState: by}, Orchestration: OrchestrationStatus{ActiveSessions: 200},
		Commbus: BusStatus{EventsPublished: 1 << 32, CommandsSent: 4, ActiveSubscribers: 6}}
	const rest = "\xa9processes\x82\xa5total\xcd\x01\x86\xa8by_state" + states +
		"\xa8services\x83\xa7healthy\x00\xa8degraded\x00\xa9unhealthy\x00\xadorchestration\x81\xafactive_sessions\xcc\xc8" +
		"\xa7commbus\x84\xb0events_published\xcf\x00\x00\x00\x01\x00\x00\x00\x00\xadcommands_sent\x04" +
		"\xb0queries_executed\x00\xb2active_subscribers\x06"
	f(&status, "\x84"+rest)
	status.Digest = &Digest{Kernel: []string{"00"}, Through: 7}
	f(&status, "\x85"+rest+"\xa6digest\x84\xa6kernel\x91\xa200\xadorchestration\x90\xa5index\x00\xa7through\x07")
	f(&Registered{Registered: []string{"a"}, HandlerID: "h"}, "\x82\xaaregistered\x91\xa1a\xaahandler_id\xa1h")
}
