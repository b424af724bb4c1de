package transcode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
)

func TestAppendMsgPack(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if p := jsonx.Check([]byte(text), jsonx.MaxDepth); !p.OK() {
			t.Fatalf("%.60q: %v", text, p)
		}
		if got := AppendMsgPack([]byte(">"), []byte(text)); string(got) != ">"+want {
			t.Errorf("%.60q = %.60x, want %.60x", text, got[1:], want)
		}
	}
	f("null", "\xc0")
	f(" true ", "\xc3")
	f("[false]", "\x91\xc2")
	f("{}", "\x80")
	f("[ ]", "\x90")
	f(`{"a":{"b":[1,[]]},"a":"x"}`, "\x82\xa1a\x81\xa1b\x92\x01\x90\xa1a\xa1x")
	f("[[1],[2,3],[]]", "\x93\x91\x01\x92\x02\x03\x90")

	f("[0,-0,127,128,-32,-33]", "\x96\x00\x00\x7f\xcc\x80\xe0\xd0\xdf")
	f("9223372036854775808", "\xcf\x80\x00\x00\x00\x00\x00\x00\x00")
	f("-9223372036854775808", "\xd3\x80\x00\x00\x00\x00\x00\x00\x00")
	f("18446744073709551616", "\xcb\x43\xf0\x00\x00\x00\x00\x00\x00")
	f("3.0", "\xcb\x40\x08\x00\x00\x00\x00\x00\x00")
	f("[1e309,-1e309]", "\x92\xc0\xc0")

	f(`"a\n\u00e9\ud834\udd1e\ud834"`, "\xaba\n\u00e9\U0001D11E\ufffd")
	f(`"\\"`, "\xa1\\")
	f(`{"\"":"世"}`, "\x81\xa1\"\xa3世")
}

// Every class of length, reached with and without an escape.
func TestAppendMsgPackLengths(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 31, 32, 255, 256, math.MaxUint16, math.MaxUint16 + 1} {
		f := func(text string, want []byte) {
			t.Helper()
			if got := AppendMsgPack(nil, []byte(text)); !bytes.Equal(got, want) {
				t.Errorf("%d: %.60q = %.60x, want %.60x", n, text, got, want)
			}
		}
		plain := strings.Repeat("x", n)
		f(`"`+plain+`"`, mpack.AppendStr(nil, plain))
		f(`"`+strings.Repeat(`\u0078`, n)+`"`, mpack.AppendStr(nil, plain))
		f(`{"\u0078`+plain+`":1}`, append(mpack.AppendStr(mpack.AppendMap(nil, 1), "x"+plain), 1))
		list := strings.TrimSuffix(strings.Repeat("1,", n), ",")
		f("["+list+"]", append(mpack.AppendArray(nil, n), strings.Repeat("\x01", n)...))
		members := strings.TrimSuffix(strings.Repeat(`"":1,`, n), ",")
		f("{"+members+"}", append(mpack.AppendMap(nil, n), strings.Repeat("\xa0\x01", n)...))
		f("[["+list+"],[]]", append(append(mpack.AppendArray([]byte{0x92}, n), strings.Repeat("\x01", n)...), 0x90))
	}
	deep := strings.Repeat("[", jsonx.MaxDepth) + strings.Repeat("]", jsonx.MaxDepth)
	if got, want := AppendMsgPack(nil, []byte(deep)), strings.Repeat("\x91", jsonx.MaxDepth-1)+"\x90"; string(got) != want {
		t.Errorf("deepest nesting = %x", got)
	}
}

// meaning reads a tree of encoding/json the way AppendMsgPack has to write it.
func meaning(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
		return nil
	case []any:
		for i := range v {
			v[i] = meaning(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = meaning(v[k])
		}
	}
	return v
}

// plain reads a tree of the reference library with the types of meaning.
func plain(v any) any {
	switch v := v.(type) {
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	}
	return v
}

// compareTranscode holds the MessagePack of checked text to what encoding/json reads in the text.
func compareTranscode(t *testing.T, text []byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var want any
	if err := d.Decode(&want); err != nil {
		t.Fatalf("encoding/json refuses %q: %v", text, err)
	}
	out := AppendMsgPack([]byte("front"), text)
	if !bytes.HasPrefix(out, []byte("front")) {
		t.Fatalf("%q: what was in dst is gone", text)
	}
	out = out[len("front"):]
	if len(mpack.Narrow(bytes.Clone(out))) != len(out) {
		t.Fatalf("%q: %x is not of the smallest classes", text, out)
	}
	var sc mpack.Scanner
	wrapped, v := append([]byte("\x81\xa1v"), out...), make([]mpack.Value, 1)
	if end, p := sc.ParseFields(wrapped, 0, mpack.Fields("v"), v); p == mpack.TooDeep {
		return // the two levels around it were too many
	} else if p != mpack.NoProblem || end != len(wrapped) {
		t.Fatalf("%q = %x: %q at %d", text, out, p.Text(), end)
	}
	got, rest, err := msgp.ReadIntfBytes(out)
	if err != nil || len(rest) != 0 {
		t.Fatalf("reference: %v, %d bytes left of %x", err, len(rest), out)
	}
	if got, want := plain(got), meaning(want); !reflect.DeepEqual(got, want) {
		t.Fatalf("%q means %#v, transcoded %#v", text, want, got)
	}
}

// transcodeTexts are the texts the fuzzer starts from.
func transcodeTexts() []string {
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":{"n":[%d,%d.5,null,true],"s":"\u00e9\n世"}`, i, -i*100, i)
	}
	return []string{
		"{}", "[1,2.5,-3e2,1e400]", `{"a":"\ud800","a":{"":[[],{}]}}`, `"\\\"\/\b\f\n\r\t"`, "[18446744073709551615,18446744073709551616]",
		"{" + strings.Join(many, " ,\n") + "}", "[" + strings.Repeat("[1],", 20) + "[]]", `[0.1,1e-400,-0.0,0e0]`, transcodeSample(600),
	}
}

// transcodeSample returns an envelope of at least size bytes.
func transcodeSample(size int) string {
	var b strings.Builder
	b.WriteString(`{"envelope_id":"env_0123456789abcdef","raw_input":"Summarise the report, then say \"done\".","iteration":2,"terminated":false,"terminal_reason":null,"outputs":{`)
	for i := 0; b.Len() < size || i == 0; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"stage_%d":{"verdict":"ok","confidence":0.875,"reasoning":"The request names one document and two actions; nothing is ambiguous.",`+
			`"steps":[{"n":1,"tool":"read_file","args":{"path":"report.md","lines":[1,400]}},{"n":2,"tool":"reply","args":{}}],"tokens_in":1834}`, i)
	}
	b.WriteString(`},"created_at":"2026-01-02T03:04:05.000000Z"}`)
	return b.String()
}

func TestAppendMsgPackAgreesWithStandardLibrary(t *testing.T) {
	for _, text := range transcodeTexts() {
		compareTranscode(t, []byte(text))
	}
}

func TestAppendMsgPackOfUncheckedText(t *testing.T) {
	text := []byte(transcodeSample(200))
	for end := range text {
		AppendMsgPack(nil, text[:end])
	}
	for i := range text {
		for _, c := range []byte("\x00\xff\"\\{}[],: ") {
			bad := bytes.Clone(text)
			bad[i] = c
			AppendMsgPack(nil, bad)
		}
	}
	for _, bad := range []string{"", "}", "[}", `"`, `"\`, `{"a":\u`, strings.Repeat("[", jsonx.MaxDepth+1), strings.Repeat(`{"":`, jsonx.MaxDepth+1)} {
		AppendMsgPack(nil, []byte(bad))
	}
}

func FuzzTranscode(f *testing.F) {
	for _, text := range transcodeTexts() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if jsonx.Check(text, jsonx.MaxDepth).OK() {
			compareTranscode(t, text)
			return
		}
		AppendMsgPack(nil, text)
	})
}
