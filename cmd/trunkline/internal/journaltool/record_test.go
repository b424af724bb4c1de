package journaltool

import (
	"errors"
	"strings"
	"testing"

	"trunkline/engine/kernel"
	"trunkline/engine/orchestration"
)

func TestParseRecord(t *testing.T) {
	change := kernel.AppendChange([]byte{kernel.Tag}, &kernel.Change{Kind: kernel.ChangeRemove, PID: []byte("p")})
	drop := orchestration.AppendChange([]byte{orchestration.Tag}, &orchestration.Change{Kind: orchestration.ChangeSessionDrop, PID: []byte("p"), Seq: 1})
	f := func(rec []byte, kind string) {
		t.Helper()
		var r record
		err := parseRecord(rec, &r)
		if (err == nil) != (kind != "") || err == nil && r.Kind() != kind {
			t.Errorf("%q: %v, %s, want %s", rec, err, r.Kind(), kind)
		}
		if err != nil && !errors.Is(err, kernel.ErrBadChange) && !errors.Is(err, orchestration.ErrBadChange) {
			t.Errorf("%q: %v is of no class", rec, err)
		}
	}
	f(change, "kernel.remove")
	f(drop, "orchestration.session_drop")
	f(nil, "")
	f([]byte("x"), "")
	f([]byte{kernel.Tag}, "")
	f([]byte{orchestration.Tag}, "")
	f(change[:len(change)-1], "")
	f(drop[:len(drop)-1], "")
	f(append(change[:len(change):len(change)], 0), "")
	f(append(drop[:len(drop):len(drop)], 0), "")
}

// FuzzParseRecord: for all bytes there is a change or an error.
func FuzzParseRecord(f *testing.F) {
	f.Add(kernel.AppendChange([]byte{kernel.Tag}, &kernel.Change{Kind: kernel.ChangeUsage, PID: []byte("p")}))
	f.Add(orchestration.AppendChange([]byte{orchestration.Tag}, &orchestration.Change{Kind: orchestration.ChangeEnd, PID: []byte("p")}))
	f.Add([]byte("?"))
	f.Fuzz(func(t *testing.T, rec []byte) {
		var r record
		if err := parseRecord(rec, &r); err == nil && strings.HasSuffix(r.Kind(), "unknown") {
			t.Errorf("%q is a change of no kind", rec)
		}
	})
}
