//go:build !race

package codec

import (
	"testing"
	"time"

	"trunkline/engine/projects/errcode"
)

// TestNoAllocs: neither a scan, nor a refusal, nor an id takes anything from the heap (exacta §10).
func TestNoAllocs(t *testing.T) {
	var s Scanner
	var m Message
	out := make([]byte, 0, 4096)
	for _, clock := range []Clock{{}, FixedClock(time.Unix(1, 0))} {
		for _, seed := range []string{"", "t1"} {
			scope := NewScope(seed, "server")
			for _, line := range [][]byte{
				[]byte(envelopeOf(`"payload":{"project_id":"` + someID + `","execution_id":"` + someID + `"}`)),
				[]byte(envelopeOf(`"ipc_version":"2.0"`)), []byte(envelopeOf(`"command":"Nope"`)), []byte(`{"a":1,`), []byte(`[]`),
				[]byte(envelopeOf(`"sent_at":"x"`)), []byte(envelopeOf(`"timeout_ms":0`)), []byte(envelopeOf(`"a":1`, `"a" :1`)),
			} {
				run := func() {
					r := s.Scan(line, &m)
					if r.Code == "" {
						r = Refusal{Code: "ST-003", Detail: "x"}
					}
					out = AppendRefusal(out[:0], m.RequestID, scope.Next(Correlation), clock, &r)
				}
				run()
				if n := testing.AllocsPerRun(100, run); n != 0 {
					t.Errorf("%s: %v allocations", line, n)
				}
			}
		}
	}
	e := Event{Name: "Progress", RequestID: []byte(someID)}
	payload := AppendProgress(nil, "apply", 1, 1)
	if n := testing.AllocsPerRun(100, func() { out = AppendEvent(out[:0], &e, Clock{}, payload) }); n != 0 {
		t.Errorf("an event: %v allocations", n)
	}
	if errcode.Lookup("ST-003") == nil {
		t.Error("no ST-003")
	}
}
