package replicated

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"trunkline/engine/journal"
)

// widest returns a control message at its limits.
func widest() roster {
	r := roster{last: maxSnapshots - 1}
	for i := range uint64(maxCuts) {
		r.cuts = append(r.cuts, cut{seq: i + 1, from: 1000 - i})
	}
	for i := range uint64(maxSnapshots) {
		r.snaps = append(r.snaps, entry{number: i, sum: ^i, chunks: uint32(i), set: strings.Repeat("s", maxSetName), meta: bytes.Repeat([]byte{byte(i)}, journal.MaxMetaBytes)})
	}
	return r
}

// TestControl: what is encoded is decoded, up to the limits; beyond them and in any other form it
// is refused.
func TestControl(t *testing.T) {
	for name, r := range map[string]roster{
		"empty": {}, "widest": widest(),
		"one": {last: 5, cuts: []cut{{seq: 9, from: 4}}, snaps: []entry{{number: 3, set: "3-x", meta: []byte{}}}},
	} {
		got, err := decodeRoster(r.encode())
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%s: %v: %+v", name, err, got)
		}
	}
	for name, change := range map[string]func(r *roster){
		"cuts": func(r *roster) { r.cuts = append(r.cuts, cut{seq: 5000}) },
		"snapshots": func(r *roster) {
			r.snaps = append(r.snaps, entry{number: maxSnapshots, set: "x"})
			r.last = maxSnapshots
		},
		"name of a set":  func(r *roster) { r.snaps[0].set += "x" },
		"meta":           func(r *roster) { r.snaps[0].meta = append(r.snaps[0].meta, 0) },
		"highest number": func(r *roster) { r.last-- },
		"no set":         func(r *roster) { r.snaps[0].set = "" },
		"cut twice":      func(r *roster) { r.cuts[1].seq = r.cuts[0].seq },
		"number twice":   func(r *roster) { r.snaps[1].number = r.snaps[0].number },
		"numbers fall":   func(r *roster) { r.snaps[0], r.snaps[1] = r.snaps[1], r.snaps[0] },
	} {
		r := widest()
		change(&r)
		if _, err := decodeRoster(r.encode()); !errors.Is(err, errControl) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzControl: no input is accepted that encode does not make, and none ends the process.
func FuzzControl(f *testing.F) {
	r := widest()
	f.Add(r.encode())
	f.Add((&roster{}).encode())
	f.Add([]byte{1, 0, 1, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRoster(b)
		if err == nil && !bytes.Equal(r.encode(), b) {
			t.Errorf("%x is decoded as %+v", b, r)
		}
	})
}
