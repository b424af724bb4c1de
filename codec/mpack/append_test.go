package mpack

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"
	"pgregory.net/rapid"
)

// smallest is the reference's encoding of v in the smallest unsigned or signed class.
func smallest(v int64) []byte {
	if v >= 0 {
		return msgp.AppendUint64(nil, uint64(v))
	}
	return msgp.AppendInt64(nil, v)
}

func TestIntegersUseTheSmallestClass(t *testing.T) {
	f := func(v int64) {
		t.Helper()
		if got := AppendInt(nil, v); !bytes.Equal(got, smallest(v)) {
			t.Errorf("AppendInt(%d) = %x, want %x", v, got, smallest(v))
		}
	}
	for _, edge := range []int64{0, 127, 128, 255, 256, 65535, 65536, 1<<32 - 1, 1 << 32, math.MaxInt64,
		-1, -32, -33, -128, -129, -32768, -32769, -1 << 31, -1<<31 - 1, math.MinInt64} {
		f(edge)
	}
	rapid.Check(t, func(rt *rapid.T) { f(rapid.Int64().Draw(rt, "v")) })
	if got := AppendUint(nil, math.MaxUint64); !bytes.Equal(got, msgp.AppendUint64(nil, math.MaxUint64)) {
		t.Errorf("got %x", got)
	}
}

func TestSizesUseTheSmallestClass(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 31, 32, 255, 256, 65535, 65536} {
		s := strings.Repeat("s", n)
		if got, want := AppendStr(nil, s), msgp.AppendString(nil, s); !bytes.Equal(got, want) {
			t.Errorf("string of %d bytes: %x..., want %x...", n, got[:min(5, len(got))], want[:min(5, len(want))])
		}
		if got, want := AppendMap(nil, n), msgp.AppendMapHeader(nil, uint32(n)); !bytes.Equal(got, want) {
			t.Errorf("map of %d: %x, want %x", n, got, want)
		}
		if got, want := AppendArray(nil, n), msgp.AppendArrayHeader(nil, uint32(n)); !bytes.Equal(got, want) {
			t.Errorf("array of %d: %x, want %x", n, got, want)
		}
	}
}

func TestFloats(t *testing.T) {
	if got := AppendFloat(nil, 10); !bytes.Equal(got, []byte{0xcb, 0x40, 0x24, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("got %x", got)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got := AppendFloat(nil, v); !bytes.Equal(got, []byte{0xc0}) {
			t.Errorf("%v is sent as %x, want nil", v, got)
		}
	}
}

// asJSON decodes b with the reference library; it fails on trailing bytes.
func asJSON(t *testing.T, b []byte) string {
	t.Helper()
	var out bytes.Buffer
	rest, err := msgp.UnmarshalAsJSON(&out, b)
	if err != nil || len(rest) != 0 {
		t.Fatalf("cannot decode %x: %v, %d bytes left", b, err, len(rest))
	}
	return out.String()
}

func TestReplies(t *testing.T) {
	f := func(b []byte, want string) {
		t.Helper()
		if got := asJSON(t, b); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	u := Usage{1, 2, 3, 4, 5}
	const counters = `"llm_calls":1,"tool_calls":2,"agent_hops":3,"tokens_in":4,"tokens_out":5`
	f(AppendProcess(nil, &Process{PID: []byte("p"), RequestID: []byte("q"), UserID: []byte("u"), SessionID: []byte("s"),
		State: "NEW", Priority: "LOW", Usage: u}),
		`{"pid":"p","request_id":"q","user_id":"u","session_id":"s","state":"NEW","priority":"LOW","usage":{`+counters+`},"current_stage":""}`)
	f(AppendUsage(nil, &u), "{"+counters+"}")
	f(AppendQuotaCheck(nil, false, []byte("why"), &u), `{"within_bounds":false,"exceeded_reason":"why",`+counters+"}")
	f(AppendQuota(nil, []string{"a", "b"}, []int32{1, 0}), `{"a":1,"b":0}`)
	f(AppendRateDecision(nil, &RateDecision{Allowed: true, CurrentCount: 1, Limit: 60, Remaining: 59}),
		`{"allowed":true,"exceeded":false,"reason":"","limit_type":"","current_count":1,"limit":60,"retry_after_seconds":0,"remaining":59}`)
	f(AppendEvent(nil, "t", []byte("{}"), 9, "s"), `{"event_type":"t","payload":"{}","timestamp_ms":9,"source":"s"}`)
	f(AppendCommand(nil, []byte("t"), []byte("{}"), []byte("s"), 9), `{"command_type":"t","payload":"{}","source":"s","timestamp_ms":9}`)
	f(AppendQuery(nil, []byte("q1"), []byte("t"), []byte("{}"), []byte("s"), 9),
		`{"query_id":"q1","query_type":"t","payload":"{}","source":"s","timeout_ms":9}`)
	f(append(AppendChunkPrefix(nil, []byte("i")), 0x80), `{"id":"i","body":{}}`)
	f(AppendStreamEnd(nil, []byte("i")), `{"id":"i"}`)
	f(append(AppendResponseHead(nil, []byte("i")), 0x80), `{"id":"i","ok":true,"body":{}}`)
	f(AppendError(nil, nil, "INTERNAL", "m", Extras{}), `{"id":"","ok":false,"error":{"code":"INTERNAL","message":"m"}}`)
	f(AppendError(nil, []byte("i"), "C", "m", Extras{Retryable: true, QueueCapacity: 1, MaxConnections: 2, RetryAfter: 3}),
		`{"id":"i","ok":false,"error":{"code":"C","message":"m","retryable":true,"kernel_queue_capacity":1,"max_connections":2,"retry_after_seconds":3}}`)
}
