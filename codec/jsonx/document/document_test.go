package document

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"trunkline/codec/jsonx"
)

var (
	testNames   = jsonx.NewNames("thread_id", "body", "metadata", "n", "N", "idempotency_key", "schema_version")
	testDecoder = NewDecoder(testNames)
)

// spell returns the members that are there.
func spell(members []jsonx.Member) string {
	var out []string
	for i, m := range members {
		if m.Kind != jsonx.Absent {
			out = append(out, fmt.Sprintf("%s=%d:%s:%v", testNames.Name(i), m.Kind, m.Raw, m.Escaped))
		} else if m.Raw != nil || m.Escaped {
			out = append(out, "an absent one that holds something")
		}
	}
	return strings.Join(out, "; ")
}

// dirty returns members that still hold something.
func dirty() []jsonx.Member {
	out := make([]jsonx.Member, testNames.Len())
	for i := range out {
		out[i] = jsonx.Member{Kind: jsonx.True, Escaped: true, Raw: []byte("true")}
	}
	return out
}

func TestDecode(t *testing.T) {
	f := func(doc, want string) {
		t.Helper()
		out := dirty()
		if err := testDecoder.Decode([]byte(doc), out); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
		if got := spell(out); got != want {
			t.Errorf("%s\n got %s\nwant %s", doc, got, want)
		}
	}
	f(`{}`, "")
	f(" \t{ \n } \r", "")
	f(`{"thread_id":"th","body":"a\n\"b\"","metadata":{"n":[1, 2.50]},"n":-1.50e+2,"schema_version":1}`,
		`thread_id=6:th:false; body=6:a\n\"b\":true; metadata=1:{"n":[1, 2.50]}:false; n=7:-1.50e+2:false; schema_version=7:1:false`)
	f(` { "n" : true , "N" : false , "body" : null , "metadata" : [ ] , "thread_id" : "" } `,
		`thread_id=6::false; body=10:null:false; metadata=3:[ ]:false; n=8:true:false; N=9:false:false`)
	f(`{"x":{"n":1},"y":["n"],"n":2}`, "n=7:2:false")

	// A name is exactly that name, however it is spelled.
	f(`{"N":1}`, "N=7:1:false")
	f(`{"Thread_ID":1,"BODY":2,"bod":3,"bodyx":4," body":5,"":6,"ſchema_version":7}`, "")
	f(`{"\u0062ody":1,"\u004e":2}`, "body=7:1:false; N=7:2:false")
	f(`{"body":"é\u00e9\ud83d\ude00😀"}`, `body=6:é\u00e9\ud83d\ude00😀:true`)
}

func TestDecodeRefuses(t *testing.T) {
	f := func(doc string) {
		t.Helper()
		out := dirty()
		if err := testDecoder.Decode([]byte(doc), out); err == nil || spell(out) != "" {
			t.Errorf("%.40q: %v, members %s", doc, err, spell(out))
		}
	}
	for _, doc := range []string{``, ` `, `null`, `[]`, `"x"`, `1`, `{`, `{"n"`, `{"n":`, `{"n":1`, `{"n":1,`, `{"n" 1}`, `{,}`, `{n:1}`, "\ufeff{}"} {
		f(doc)
	}
	// What a strict check refuses before must not bring down the process either.
	for _, open := range []string{`[`, `{"n":`, `{"x":`, `{"n":[`, `{"x":[{"n":`} {
		f(`{"n":` + strings.Repeat(open, 1<<20))
		f(`{"x":` + strings.Repeat(open, 1<<20))
	}
}

func TestDecodeHugeDocument(t *testing.T) {
	doc := []byte(`{"x":[` + strings.Repeat("1,", 1<<19) + `1],"body":"` + strings.Repeat("x", 8<<20) + `","n":1}`)
	out := dirty()
	if err := testDecoder.Decode(doc, out); err != nil || len(out[1].Raw) != 8<<20 || out[3].Kind != jsonx.Number {
		t.Errorf("%v, a body of %d bytes", err, len(out[1].Raw))
	}
	doc = []byte("{")
	for i := range 50_000 {
		doc = fmt.Appendf(doc, `"k%d":%d,`, i, i)
	}
	if err := testDecoder.Decode(append(doc, `"n":2}`...), out); err != nil || spell(out) != "n=7:2:false" {
		t.Errorf("%v, %s", err, spell(out))
	}
}

func TestDecodeBesideEachOther(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			out := make([]jsonx.Member, testNames.Len())
			for i := range 200 {
				doc, want := fmt.Sprintf(`{"body":"%d","n":%d}`, g, i), fmt.Sprintf("body=6:%d:false; n=7:%d:false", g, i)
				if err := testDecoder.Decode([]byte(doc), out); err != nil || spell(out) != want {
					t.Errorf("%s: %v, %s", doc, err, spell(out))
				}
			}
		})
	}
	wg.Wait()
}

// compare decodes text that passes a strict check, and compares the members with those of a scan.
func compare(t interface {
	Helper()
	Fatalf(string, ...any)
}, text []byte) {
	t.Helper()
	var s jsonx.Strict
	want := make([]jsonx.Member, testNames.Len())
	strict := s.Scan(testNames, text, 64, want)
	before, out := bytes.Clone(text), dirty()
	err := testDecoder.Decode(text, out)
	if !bytes.Equal(text, before) {
		t.Fatalf("%q became %q", before, text)
	}
	if strict.OK() && (err != nil || spell(out) != spell(want)) {
		t.Fatalf("%q: %v\n got %s\nwant %s", text, err, spell(out), spell(want))
	}
	for _, m := range out {
		if len(m.Raw) > len(text) {
			t.Fatalf("%q: a member of %d bytes", text, len(m.Raw))
		}
	}
}

func TestDecodeAsScanned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"thread_id", "body", "n", "N", "x", "metadata", "", `\\`, "Body"}), rapid.ID).Draw(t, "keys")
		values := rapid.SampledFrom([]string{`1`, `-0.5E1`, `""`, `"a\"b"`, `"\u0000é"`, `null`, `true`, `false`, `{}`, `[ ]`, `{"n":[{"body":"}"}]}`, `["]",[[]]]`})
		text := "{"
		for i, k := range keys {
			if i > 0 {
				text += rapid.SampledFrom([]string{",", " ,\n"}).Draw(t, "comma")
			}
			text += `"` + k + `"` + rapid.SampledFrom([]string{":", " : ", "\t:"}).Draw(t, "colon") + values.Draw(t, "value")
		}
		compare(t, []byte(text+"}"))
	})
}

func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{"body":"a\n","n":1,"x":[{"n":2}]}`, `{"\u0062ody":null,"N":[],"n":{}}`, `{"n":1,"n":2}`, `{"body":"` + "\xff" + `"}`, `{"n":tru`, `null`, `{"n":01}`,
		`{"body":"\ud800"}`, `{"x":"\`, `{"x":[1,{"y":"]"}],"n":"`, `{"metadata":{"a":[}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { compare(t, text) })
}
