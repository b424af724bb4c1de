package gobench

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"trunkline/fuzz/rounds"
)

func TestParse(t *testing.T) {
	const text = `goos: linux
pkg: trunkline/x
BenchmarkFind/plain300/sonic-valid-searcher-2         	  132286	       463.2 ns/op	 647.60 MB/s	       460.6 cpu-ns/op	       0 B/op
BenchmarkFind/echo-52 	  10	       1 ns/op
for people
BenchmarkLast
pkg: trunkline/y
BenchmarkLast-16 1 2e3 ns/op 5 cpu-ns/op 64 B/op
BenchmarkLast-16 2 3e3 ns/op 4 cpu-ns/op 63 B/op
BenchmarkLast-16 3 1e3 ns/op 6 cpu-ns/op 65 B/op
PASS`
	want := []Result{
		{"Find/plain300/sonic-valid-searcher", 132286, map[string]float64{Time: 463.2, "MB/s": 647.6, "cpu-ns/op": 460.6, Bytes: 0}},
		{"Find/echo", 10, map[string]float64{Time: 1}},
		{"Last", 1, map[string]float64{Time: 1000, Processor: 4, Bytes: 64}},
	}
	if got, err := parse(text); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"BenchmarkX-2 10 1 ns/op 5\n", "BenchmarkX-2 x 1 ns/op\n", "BenchmarkX-2 10 x ns/op\n",
		"BenchmarkX-2 10 --- FAIL\n"} {
		if got, err := parse(bad); err == nil {
			t.Errorf("%q was taken as %+v", bad, got)
		}
	}
}

// TestBinary builds a module of one package, and a package without tests.
func TestBinary(t *testing.T) {
	if !rounds.Long() {
		t.Skip("builds test binaries, in the long form")
	}
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module m\n\ngo 1.26\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc BenchmarkA(b *testing.B) { for b.Loop() {} }\n\nfunc BenchmarkB(b *testing.B) { b.Fatal(\"broken\") }\n",
		"q/q.go":      "package q\n",
	} {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := Build(root, "q", root+"/q.test"); err == nil {
		t.Errorf("%v is a test binary", b)
	}
	if _, err := Build(root, "none", root+"/n.test"); err == nil {
		t.Error("built what is not there")
	}
	b, err := Build(root, "p", root+"/p.test")
	if err != nil {
		t.Fatal(err)
	}
	if names, err := b.List("[AB]/x"); err != nil || strings.Join(names, " ") != "BenchmarkA BenchmarkB" {
		t.Errorf("%q, %v", names, err)
	}
	if got, err := b.Run("^BenchmarkA$", 1e6, 2); err != nil || len(got) != 1 || got[0].Name != "A" || got[0].Values[Time] <= 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := b.Run("B", 1e6, 1); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("a broken benchmark: %v", err)
	}
}
