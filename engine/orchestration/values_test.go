package orchestration

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"
	"pgregory.net/rapid"

	"trunkline/codec/mpack"
)

// equal asks a pipeline whether a rule with one value takes an output with the other.
func equal(t rapid.TB, rule, output []byte) bool {
	t.Helper()
	p, refusal := ParsePipeline(withRule(rule))
	if refusal != "" {
		t.Fatalf("%x: %s", rule, refusal)
	}
	return p.Next(0, true, withMember(output)) == 0
}

// withRule is a configuration whose one stage leads to itself if v equals value.
func withRule(value []byte) []byte {
	head, rest, _ := strings.Cut(string(pack(stagesOf(`{"name":"s","routing":[{"condition":"v","value":"HERE","target":"s"}]}`))), "\xa4HERE")
	return []byte(head + string(value) + rest)
}

func withMember(value []byte) []byte { return append([]byte("\x81\xa1v"), value...) }

// canon writes a value so that equal ones read alike, by way of another decoder: numbers as
// fractions, keys in order.
func canon(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return strconv.Quote(v)
	case int64:
		return new(big.Rat).SetInt64(v).String()
	case uint64:
		return new(big.Rat).SetUint64(v).String()
	case float32:
		return canon(float64(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return "nil"
		}
		return new(big.Rat).SetFloat64(v).String()
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, canon(e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		var parts []string
		for key, e := range v {
			parts = append(parts, strconv.Quote(key)+":"+canon(e))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	}
	panic(fmt.Sprintf("cannot spell %T", v))
}

func canonOf(t rapid.TB, raw []byte) string {
	t.Helper()
	v, rest, err := msgp.ReadIntfBytes(raw)
	if err != nil || len(rest) > 0 {
		t.Fatalf("%x: %v", raw, err)
	}
	return canon(v)
}

func TestEqual(t *testing.T) {
	f := func(a, b string, want bool) {
		t.Helper()
		x, y := pack(a), pack(b)
		if got := equal(t, x, y); got != want {
			t.Errorf("%s = %s: %v", a, b, got)
		}
		if got := equal(t, y, x); got != want {
			t.Errorf("%s = %s: %v", b, a, got)
		}
	}
	f(`null`, `null`, true)
	f(`null`, `false`, false)
	f(`null`, `0`, false)
	f(`null`, `""`, false)
	f(`true`, `1`, false)
	f(`false`, `0`, false)
	f(`true`, `false`, false)
	f(`1`, `1.0`, true)
	f(`-0.0`, `0`, true)
	f(`1`, `"1"`, false)
	f(`2.5`, `2.5`, true)
	f(`9007199254740993`, `9007199254740992.0`, false)
	f(`9007199254740992`, `9007199254740992.0`, true)
	f(`9223372036854775807`, `9223372036854775808.0`, false)
	f(`9223372036854775808`, `9223372036854775808.0`, true)
	f(`18446744073709551615`, `18446744073709551616.0`, false)
	f(`18446744073709549568`, `18446744073709549568.0`, true)
	f(`-9223372036854775808`, `-9223372036854775808.0`, true)
	f(`18446744073709551615`, `-1`, false)
	f(`1e300`, `1e300`, true)
	f(`"é"`, `"é"`, true)
	f(`"\u00e9"`, `"e\u0301"`, false) // no normalisation
	f(`[]`, `{}`, false)
	f(`[]`, `[]`, true)
	f(`{}`, `{}`, true)
	f(`[]`, `null`, false)
	f(`[1,2]`, `[1.0,2]`, true)
	f(`[1,2]`, `[2,1]`, false)
	f(`[1,2]`, `[1,2,3]`, false)
	f(`[[1],2]`, `[1,[2]]`, false)
	f(`[1]`, `1`, false)
	f(`["a"]`, `{"a":"a"}`, false)
	f(`["a","b"]`, `{"a":"b"}`, false)
	f(`{"a":1,"b":[true,null]}`, `{"b":[true,null],"a":1.0}`, true)
	f(`{"a":1,"b":2}`, `{"a":2,"b":1}`, false)
	f(`{"a":1}`, `{"a":1,"b":null}`, false)
	f(`{"a":null}`, `{}`, false)
	f(`{"a":{"b":{"c":[{"d":1}]}}}`, `{"a":{"b":{"c":[{"d":1}]}}}`, true)
	f(`{"a":{"b":{"c":[{"d":1}]}}}`, `{"a":{"b":{"c":[{"d":2}]}}}`, false)
	// Of a repeated key the last one counts, and what it replaces may be anything.
	f(`{"a":1,"a":2}`, `{"a":2}`, true)
	f(`{"a":1,"a":2}`, `{"a":1}`, false)
	f(`{"a":[9,{"zz":9}],"a":2}`, `{"a":2}`, true)
	f(`{"a":2,"a":[9]}`, `{"a":2}`, false)
	f(`{"x":{"a":"zz","a":{"b":7},"a":1},"y":0}`, `{"y":0,"x":{"a":1}}`, true)
	f(`{`+repeat(99, `"a":%d`)+`,"b":1,"a":5}`, `{"a":5,"b":1}`, true)
}

// TestEncodingsOfOneNumber: whatever class a number comes in, it is that number.
func TestEncodingsOfOneNumber(t *testing.T) {
	f32 := func(v float32) string {
		return string(binary.BigEndian.AppendUint32([]byte{0xca}, math.Float32bits(v)))
	}
	f64 := func(v float64) string {
		return string(binary.BigEndian.AppendUint64([]byte{0xcb}, math.Float64bits(v)))
	}
	classes := [][]string{
		{"\x01", "\xcc\x01", "\xcd\x00\x01", "\xce\x00\x00\x00\x01", "\xcf\x00\x00\x00\x00\x00\x00\x00\x01", "\xd0\x01", "\xd1\x00\x01",
			"\xd2\x00\x00\x00\x01", "\xd3\x00\x00\x00\x00\x00\x00\x00\x01", f32(1), f64(1)},
		{"\xff", "\xd0\xff", "\xd1\xff\xff", "\xd2\xff\xff\xff\xff", "\xd3\xff\xff\xff\xff\xff\xff\xff\xff", f32(-1), f64(-1)},
		{"\xcf\x80\x00\x00\x00\x00\x00\x00\x00", f32(1 << 63), f64(1 << 63)},
		{"\xd3\x80\x00\x00\x00\x00\x00\x00\x00", f32(-1 << 63), f64(-1 << 63)},
		{"\x00", "\xd3\x00\x00\x00\x00\x00\x00\x00\x00", f32(float32(math.Copysign(0, -1))), f64(math.Copysign(0, -1))},
		{f32(0.5), f64(0.5)},
		{f32(0.1), f64(float64(float32(0.1)))},
		{f64(0.1)},
		{f64(5e-324)},
		{f64(1 << 64), f32(1 << 64)},
		{f64(-1<<63 - 2048)},
		{f64(math.MaxFloat64)},
		{"\xc0", f64(math.NaN()), f64(math.Inf(1)), f32(float32(math.Inf(-1))), f32(float32(math.NaN()))},
		{"\xc2"},
		{"\xc3"},
	}
	for i, left := range classes {
		for j, right := range classes {
			for _, a := range left {
				for _, b := range right {
					if got := equal(t, []byte(a), []byte(b)); got != (i == j) {
						t.Errorf("%x = %x: %v", a, b, got)
					}
					if got := equal(t, []byte("\x91"+a), []byte("\x91"+b)); got != (i == j) {
						t.Errorf("[%x] = [%x]: %v", a, b, got)
					}
				}
			}
		}
	}
}

// TestManyRules: values of one condition are distinguished among many of the same shape, and those
// of different stages do not mix.
func TestManyRules(t *testing.T) {
	const n = 500
	p := mustParse(t, stagesOf(`{"name":"s0","routing":[`+repeat(n, `{"condition":"v","value":{"k":[%[1]d,{"x":"t%[1]d"}]},"target":"t%[1]d"}`)+
		`]},`+repeat(n, `{"name":"t%[1]d","routing":[{"condition":"v","value":%[1]d,"target":"s0"}]}`)))
	for i := range n {
		if got := p.Next(0, true, pack(fmt.Sprintf(`{"v":{"k":[%[1]d,{"x":"t%[1]d"}]}}`, i))); got != i+1 {
			t.Fatalf("value %d leads to %d", i, got)
		}
		if got := p.Next(0, true, pack(fmt.Sprintf(`{"v":{"k":[%d,{"x":"t%d"}]}}`, i, (i+1)%n))); got != end {
			t.Fatalf("a value of two rules' parts leads to %d", got)
		}
		if got := p.Next(i+1, true, pack(fmt.Sprintf(`{"v":{"k":[%[1]d,{"x":"t%[1]d"}]}}`, i))); got != end {
			t.Fatalf("the value of another stage's rule leads to %d", got)
		}
	}
}

// chain is a value of as many levels, lists and maps in turn, with a leaf in the innermost.
func chain(levels int, leaf string) []byte {
	var b strings.Builder
	for i := range levels {
		b.WriteString([]string{"\x91", "\x81\xa1a"}[i%2])
	}
	return []byte(b.String() + leaf)
}

func TestDeepValues(t *testing.T) {
	f := func(rule, output []byte, want bool) {
		t.Helper()
		if got := equal(t, rule, output); got != want {
			t.Errorf("%d bytes = %d bytes: %v", len(rule), len(output), got)
		}
	}
	for _, levels := range []int{1, 2, 100, 509} {
		f(chain(levels, "\x07"), chain(levels, "\x07"), true)
		f(chain(levels, "\x07"), chain(levels, "\x08"), false)
		f(chain(levels, "\x07"), chain(levels+1, "\x07"), false)
		f(chain(levels+2, "\x07"), chain(levels, "\x07"), false)
	}
	f(chain(5, "\x07"), chain(1<<20, "\x07"), false) // deeper than the Scanner lets through
}

// TestReplacedTree: the values of repeated keys may hold more than all rules together, as long as
// they are replaced in the end.
func TestReplacedTree(t *testing.T) {
	ones := repeat(50, `"k%d":1`)
	rule := pack(`{` + ones + `,"a":{}}`)
	for _, levels := range []int{1, 2, 3, 10, 400} {
		deep := strings.Repeat(`{`+ones+`,"a":`, levels) + `{}` + strings.Repeat(`}`, levels)
		if !equal(t, rule, pack(`{"a":`+deep+`,`+ones+`,"a":{}}`)) {
			t.Errorf("%d levels, replaced: not equal", levels)
		}
		if got := equal(t, rule, pack(`{`+ones+`,"a":{},"a":`+deep+`}`)); got {
			t.Errorf("%d levels that replace: equal", levels)
		}
		if got := equal(t, rule, pack(deep)); got != (levels == 1) {
			t.Errorf("%d levels: %v", levels, got)
		}
	}
}

// twoWays generates pairs of encodings that are often equal: the second is the first written in
// another way, at times with a change.
type twoWays struct {
	t    *rapid.T
	a, b []byte
	odds int // of a change, in a thousand
}

func (w *twoWays) chance(in1000 int) bool { return rapid.IntRange(0, 999).Draw(w.t, "chance") < in1000 }

func (w *twoWays) value(depth int) {
	if w.chance(w.odds) {
		w.b = append(w.b, byte(rapid.IntRange(0, 3).Draw(w.t, "other")))
		v := twoWays{t: w.t}
		v.value(depth)
		w.a = append(w.a, v.a...)
		return
	}
	switch rapid.IntRange(0, 9-min(depth, 4)).Draw(w.t, "kind") {
	case 0:
		w.a, w.b = append(w.a, 0xc0), append(w.b, 0xc0)
	case 1:
		v := rapid.Bool().Draw(w.t, "bool")
		w.a, w.b = mpack.AppendBool(w.a, v), mpack.AppendBool(w.b, v)
	case 2:
		v := rapid.SampledFrom([]string{"", "a", "b", "0"}).Draw(w.t, "text")
		w.a, w.b = mpack.AppendStr(w.a, v), append(append(w.b, 0xda, 0, byte(len(v))), v...)
	case 3, 4, 5:
		v := rapid.SampledFrom([]int64{0, 1, -1, 200, 1 << 53, 1<<53 + 1, math.MaxInt64, math.MinInt64}).Draw(w.t, "int")
		w.a, w.b = w.number(w.a, v), w.number(w.b, v)
	case 6, 7:
		n := rapid.IntRange(0, 3).Draw(w.t, "elements")
		w.a, w.b = mpack.AppendArray(w.a, n), mpack.AppendArray(w.b, n)
		for range n {
			w.value(depth + 1)
		}
	default:
		w.mapping(depth)
	}
}

// number appends v in some class, if need be as the nearest float, which is another number then.
func (w *twoWays) number(dst []byte, v int64) []byte {
	switch rapid.IntRange(0, 2).Draw(w.t, "class") {
	case 0:
		return mpack.AppendInt(dst, v)
	case 1:
		return binary.BigEndian.AppendUint64(append(dst, 0xd3), uint64(v))
	}
	return mpack.AppendFloat(dst, float64(v))
}

// mapping writes a map, in b with its pairs in another order, and at times with a pair that a later
// one replaces.
func (w *twoWays) mapping(depth int) {
	keys := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "zz"}), 0, 3).Draw(w.t, "keys")
	var pairs [][]byte
	w.a = mpack.AppendMap(w.a, len(keys))
	for _, key := range keys {
		v := twoWays{t: w.t, odds: w.odds}
		v.value(depth + 1)
		w.a = append(mpack.AppendStr(w.a, key), v.a...)
		pairs = append(pairs, append(mpack.AppendStr(nil, key), v.b...))
	}
	if !slices.Contains(keys, "dup") && len(slices.Compact(slices.Sorted(slices.Values(keys)))) == len(keys) {
		pairs = rapid.Permutation(pairs).Draw(w.t, "order")
	}
	if len(keys) > 0 && w.chance(300) {
		v := twoWays{t: w.t}
		v.value(depth + 1)
		pairs = slices.Insert(pairs, 0, append(mpack.AppendStr(nil, keys[0]), v.b...))
	}
	w.b = mpack.AppendMap(w.b, len(pairs))
	for _, pair := range pairs {
		w.b = append(w.b, pair...)
	}
}

func TestEqualAsAnotherDecoderSaysIt(t *testing.T) {
	same, other := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := twoWays{t: t, odds: rapid.SampledFrom([]int{0, 0, 20, 200}).Draw(t, "odds")}
		w.value(0)
		want := canonOf(t, w.a) == canonOf(t, w.b)
		if want {
			same++
		} else {
			other++
		}
		for _, pair := range [][2][]byte{{w.a, w.b}, {w.b, w.a}} {
			if got := equal(t, pair[0], pair[1]); got != want {
				t.Fatalf("%x = %x: %v\n%s\n%s", pair[0], pair[1], got, canonOf(t, w.a), canonOf(t, w.b))
			}
		}
	})
	if !testing.Short() && (same < 10 || other < 10) {
		t.Errorf("%d equal and %d different pairs: the generator lost its point", same, other)
	}
}
