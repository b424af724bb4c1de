package threads

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"trunkline/codec/jsonx"
)

// TestFingerprints has the examples of threads §9.
func TestFingerprints(t *testing.T) {
	var d digester
	f := func(body, kind, metadata, want string) {
		t.Helper()
		for range 2 {
			sum := d.post([]byte(body), 0, nil, kind, jsonx.Compact([]byte(metadata)))
			if got := hex.EncodeToString(sum[:]); got != want {
				t.Errorf("%s %s: %s, want %s", body, metadata, got, want)
			}
		}
	}
	f("hi", "chat", "", "1f86475e199dff0ef0e05774892c0fbe112477bd8ac520ea0182d1823bcbe023")
	f("hi", "chat", "{}", "17d48177063b383e9d9905480da64f744f41011e8ed11ca44723bd9ff6b712bb")
	const mixed = "41516ae2d8cd11669dee97d4bef09024fa85779d84ee14b0e1411e9ce6f277e8"
	f("hi", "chat", `{"n":100,"f":1.50,"z":-0,"b":[true,null],"a":"é\n"}`, mixed)
	f("hi", "chat", `{"a":"\u00e9\u000a","b":[true,null],"f":15e-1,"n":1e2,"z":0.0}`, mixed)
	f("Blocking issue found in null fallback", "event", `{"event_type":"finding_reported","severity":"high","task_id":"TASK-219",
		"file":"lib/features/profile/data/mappers/user_mapper.dart","line":42}`, "dbfdd5ccaa75b132aeb06b4984077bd4e8825a5250322bb5a93996cf67b8621a")
	// A payload that is longer than one write.
	long := strings.Repeat("x", 10_000)
	sum := sha256.Sum256([]byte(`{"body":"` + long + `","kind":"chat","schema_version":1}`))
	f(long, "chat", "", hex.EncodeToString(sum[:]))
}
