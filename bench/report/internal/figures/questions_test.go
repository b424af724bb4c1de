package figures

import (
	"maps"
	"testing"
)

func TestAsked(t *testing.T) {
	got, err := Asked(folder(map[string]string{
		"a_timing_test.go": "package q\n\n// Question: what does a frame\n// cost?\n\nimport \"testing\"\n\nfunc BenchmarkFrame(b *testing.B) {}\nfunc BenchmarkOther(b *testing.B) {}\n",
		"b_timing_test.go": "package q\n\nfunc BenchmarkUnasked(b *testing.B) {}\n",
		"c_test.go":        "package q\n\n// Question: none?\nfunc BenchmarkElsewhere(b *testing.B) {}\n",
	}))
	want := map[string]string{"Frame": "What does a frame cost?", "Other": "What does a frame cost?"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := Asked(missing{}); err != nil || len(got) != 0 {
		t.Errorf("without sources: %v, %v", got, err)
	}
}

func TestTop(t *testing.T) {
	f := func(name, top, variant string) {
		t.Helper()
		b := Benchmark{Name: name}
		if a, v := b.Top(); a != top || v != variant {
			t.Errorf("%s: %s and %s", name, a, v)
		}
	}
	f("FrameSplit", "FrameSplit", "")
	f("Table/rows=10k/goroutines=16", "Table", "rows=10k/goroutines=16")
}
