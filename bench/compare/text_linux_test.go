package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const example = `revision: 0123
goos: linux
pkg: trunkline/codec/frame
cpu: Some CPU @ 2.00GHz
BenchmarkRead/size=64-2 	 1000	 3.5 ns/op	 120.0 MB/s	 0 B/op	 1 allocs/op
BenchmarkRead/size=64-2 	 1000	 3.25 ns/op	 120.0 MB/s	 0 B/op	 1 allocs/op
    frame_test.go:7: a word from a benchmark
PASS
pkg: trunkline/bus
BenchmarkFan 7 1e3 ns/op
ok  	trunkline/bus	1.2s
`

func TestParse(t *testing.T) {
	got, err := parse(strings.NewReader(example))
	if err != nil {
		t.Fatal(err)
	}
	read := func(ns float64) result {
		return result{key{"trunkline/codec/frame", "Read/size=64"}, 2, 1000, map[string]float64{"ns/op": ns, "MB/s": 120, "B/op": 0, "allocs/op": 1}}
	}
	want := text{
		config: map[string]string{"revision": "0123", "goos": "linux", "cpu": "Some CPU @ 2.00GHz"},
		results: []result{read(3.5), read(3.25),
			{key{"trunkline/bus", "Fan"}, 0, 7, map[string]float64{"ns/op": 1000}}},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(text{}, result{}, key{})); d != "" {
		t.Error(d)
	}
}

func TestParseNames(t *testing.T) {
	f := func(in, name string, procs int) {
		t.Helper()
		got, err := parse(strings.NewReader(in + " 1 2 ns/op"))
		if err != nil || len(got.results) != 1 || got.results[0].name != name || got.results[0].procs != procs {
			t.Errorf("parse(%q) = %+v, %v, want %s with %d", in, got.results, err, name, procs)
		}
	}
	f("BenchmarkX", "X", 0)
	f("BenchmarkX-16", "X", 16)
	f("BenchmarkX/rows=10k/goroutines=64-2", "X/rows=10k/goroutines=64", 2)
	f("BenchmarkX-5-1", "X-5", 1)
	f("BenchmarkX-05", "X-05", 0)
	f("Benchmark_x", "_x", 0)
	f("BenchmarkÄ", "Ä", 0)
}

func TestParseRefuses(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		_, err := parse(strings.NewReader("goos: linux\n" + line + "\n"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "cannot read line 2 ") {
			t.Errorf("parse(%q): %v, want %q in line 2", line, err, want)
		}
	}
	f("Benchmark 1 2 ns/op", "is no result")
	f("BenchmarkX", "is no result")
	f("BenchmarkX 1", "is no result")
	f("BenchmarkX 1 2", "is no result")
	f("BenchmarkX 1 2 ns/op 3", "is no result")
	f("Benchmarkx 1 2 ns/op", "is no result")
	f("BenchmarkX-2 a word 1000 3.5 ns/op", "no count")
	f("BenchmarkX 0 2 ns/op", "no count")
	f("BenchmarkX 1 fast ns/op", "no figure")
	f("BenchmarkX 1 NaN ns/op", "no figure")
	f("BenchmarkX 1 2 ns/op 3 ns/op", "two figures in ns/op")
}

func TestParseLongLine(t *testing.T) {
	if _, err := parse(strings.NewReader(strings.Repeat("x", 1<<20))); err == nil {
		t.Error("a line of a mebibyte was taken")
	}
}

// FuzzParse: what was read is written so that it is read as the same, and benchstat's first look
// goes to the time.
func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Add("BenchmarkX-5-1 1 2 ns/op\npkg: \nBenchmarkY 1 -2e-3 x 0x1p4 y")
	f.Add("pkg: a\nBenchmarkX 1 2 B/op\npkg:b\nBenchmarkX 1 2 B/op\nunit: ns\r\n")
	f.Fuzz(func(t *testing.T, in string) {
		first, err := parse(strings.NewReader(in))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := first.write(&out); err != nil {
			t.Fatal(err)
		}
		second, err := parse(bytes.NewReader(out.Bytes()))
		if err != nil {
			t.Fatalf("%v, in\n%s", err, out.Bytes())
		}
		if d := cmp.Diff(first, second, cmp.AllowUnexported(text{}, result{}, key{})); d != "" {
			t.Fatalf("%s\nin\n%s", d, out.Bytes())
		}
	})
}

func TestWriteBeginsWithTheTime(t *testing.T) {
	in := text{results: []result{{key{"p", "X"}, 4, 9, map[string]float64{"B/op": 1, "ns/op": 2.5, "MB/s": 3, "~": 4}}}}
	var out strings.Builder
	if err := in.write(&out); err != nil {
		t.Fatal(err)
	}
	if want := "pkg: p\nBenchmarkX-4\t9\t2.5 ns/op\t1 B/op\t3 MB/s\t4 ~\n"; out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
}
