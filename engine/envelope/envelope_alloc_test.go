//go:build !race

package envelope

import "testing"

// maxStepAllocs is how many allocations a step of a 4 KiB envelope may cost: O(10) by envelope §10,
// for the texts of what it changes.
const maxStepAllocs = 10

func allocates(t *testing.T, what string, most float64, op func()) {
	t.Helper()
	for range 3 { // it is warm then
		op()
	}
	if got := testing.AllocsPerRun(200, op); got > most {
		t.Errorf("%s: %v allocations, want at most %v", what, got, most)
	}
}

func TestReadingAndWritingDoNotAllocate(t *testing.T) {
	for what, src := range map[string][]byte{"flat": fullFlat(), "nested": fullNested(t), "missing members": []byte(`{"envelope_id":"\u0065"}`)} {
		for _, form := range [...]Form{JSON, MsgPack} {
			src := (parts{form, Flat}).bytes(string(src))
			dst := make([]byte, 0, 4*len(src)+4096)
			var e Env
			allocates(t, parts{form, Flat}.String()+" "+what, 0, func() {
				if p := e.Decode(form, src); p != nil {
					t.Fatal(p.Message())
				}
				e.Append(dst)
			})
		}
	}
	var e Env
	src, dst, stage, output := sessionFlat(), make([]byte, 0, 8192), "s2", []byte{0x81, 0xa1, 'v', 1}
	name := []byte("a2")
	allocates(t, "a report", 0, func() { // what boundary B does at each of them
		if p := e.Decode(MsgPack, src); p != nil {
			t.Fatal(p.Message())
		}
		e.SetOutput(name, output)
		e.SetInt(Iteration, e.Int(Iteration)+1)
		e.SetText(CurrentStage, []byte(stage))
		e.Append(dst)
	})
}

func TestStepAllocatesLittle(t *testing.T) {
	x, dst := testEngine(), make([]byte, 0, 16<<10)
	for what, src := range map[string][]byte{
		"one stage on":  fullFlat(),
		"a fresh one":   []byte(`{"raw_input":"hi","envelope_id":"e"}`),
		"compact input": compacted(fullFlat()),
	} {
		allocates(t, what, maxStepAllocs, func() {
			if _, _, err := x.Process(dst, src); err != nil {
				t.Fatal(err)
			}
		})
	}
}
