package ipcclient

import (
	"testing"

	"trunkline/codec/frame"
	"trunkline/codec/transcode"
)

// FuzzDecode: no server frame makes the client crash, and a decoded one holds what its type
// promises.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"id":"1","ok":true,"body":{"a":1}}`,
		`{"id":"1","ok":false,"error":{"code":"NOT_FOUND","message":"m","retryable":true,"retry_after_seconds":1.5}}`,
		`{"id":"1"}`,
	} {
		b, err := transcode.EncodeJSON([]byte(seed))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(frame.Response), b)
		f.Add(byte(frame.Error), b)
	}
	f.Fuzz(func(t *testing.T, kind byte, payload []byte) {
		m, err := decode(frame.Type(kind), payload)
		if err != nil {
			return
		}
		if (m.kind == frame.Response && m.body == nil) || (m.kind == frame.Error && m.err == nil) {
			t.Fatalf("%x %x decoded to %+v", kind, payload, m)
		}
	})
}
