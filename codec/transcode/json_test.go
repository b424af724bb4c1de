package transcode

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"
	"pgregory.net/rapid"

	"trunkline/codec/wire"
)

func TestEncodeJSON(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		got, err := EncodeJSON([]byte(text))
		if err != nil || hex.EncodeToString(got) != want {
			t.Errorf("%s: got %x, %v, want %s", text, got, err, want)
		}
	}
	f(`{}`, "80")
	f(` {"b":1,"a":[true,null,"x"]} `, "82a162"+"01"+"a161"+"93c3c0a178")
	f(`0`, "00")
	f(`127`, "7f")
	f(`128`, "cc80")
	f(`300`, "cd012c")
	f(`18446744073709551615`, "cfffffffffffffffff")
	f(`18446744073709551616`, "cb43f0000000000000")
	f(`-1`, "ff")
	f(`-33`, "d0df")
	f(`-9223372036854775808`, "d38000000000000000")
	f(`1.5`, "cb3ff8000000000000")
	f(`10.0`, "cb4024000000000000")
	f(`1e2`, "cb4059000000000000")
	f(`"\u00e9\n"`, "a3c3a90a")
	f(`{"k":1,"k":2}`, "82a16b01a16b02")
	f("["+strings.Repeat("0,", 15)+"0]", "dc0010"+strings.Repeat("00", 16))
}

func TestEncodeJSONRefuses(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	if _, err := EncodeJSON([]byte(deep(wire.MaxMsgpackDepth))); err != nil {
		t.Errorf("at the nesting limit: %v", err)
	}
	for _, text := range []string{
		"", " ", "{", `{"a"}`, `{"a":1,}`, `{1:2}`, "[1 2]", "[}", "01", "1e999", "{} {}", "nul", deep(wire.MaxMsgpackDepth + 1),
	} {
		if got, err := EncodeJSON([]byte(text)); err == nil {
			t.Errorf("%.40q became %x", text, got)
		}
	}
}

func TestAppendJSON(t *testing.T) {
	f := func(value, want string) {
		t.Helper()
		b, err := hex.DecodeString(value)
		if err != nil {
			t.Fatal(err)
		}
		got, err := AppendJSON([]byte("> "), b)
		if err != nil || string(got) != "> "+want {
			t.Errorf("%s: got %s, %v, want %s", value, got, err, want)
		}
	}
	f("82a162"+"01"+"a161"+"93c3c2c0", `{"b":1,"a":[true,false,null]}`)
	f("cfffffffffffffffff", "18446744073709551615")
	f("d38000000000000000", "-9223372036854775808")
	f("cb0000000000000000", "0.0")
	f("cb4024000000000000", "10.0")
	f("ca3fc00000", "1.5")
	f("cb7ff8000000000000", "null")
	f("cbfff0000000000000", "null")
	f("cb44b52d02c7e14af6", "1e+23")
	f("cb3e112e0be826d695", "1e-09")
	f("a6225c0a0d0901", `"\"\\\n\r\t\u0001"`)
	f("a4c3a97fff", "\"é\x7f�\"")
	f("a53c3e26e282", "\"<>&��\"")
}

func TestAppendJSONRefuses(t *testing.T) {
	deep := func(n int) []byte { return append(bytes.Repeat([]byte{0x91}, n-1), 0x90) }
	if _, err := AppendJSON(nil, deep(wire.MaxMsgpackDepth)); err != nil {
		t.Errorf("at the nesting limit: %v", err)
	}
	for _, value := range [][]byte{
		nil, {0xc1}, {0xc4, 1, 0}, {0xd4, 1, 0}, {0x81, 1, 1}, {0x81}, {0x92, 1}, {1, 1}, {0xa2, 'x'}, {0xcd, 1},
		{0xdd, 0xff, 0xff, 0xff, 0xff}, deep(wire.MaxMsgpackDepth + 1),
	} {
		if got, err := AppendJSON(nil, value); err == nil {
			t.Errorf("%x became %s", value, got)
		}
	}
}

// TestAppendJSONOfACutValue: what is not whole leaves nothing behind.
func TestAppendJSONOfACutValue(t *testing.T) {
	f := func(value, want string) {
		t.Helper()
		b, _ := hex.DecodeString(value)
		if got, err := AppendJSON(nil, b); err == nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", value, got, err, want)
		}
	}
	f("82a16101a162a3", `{"a":1,"b":`)
	f("82a16101a162cd01", `{"a":1,"b":`)
	f("82a16101a162cb00", `{"a":1,"b":`)
	f("82a16101a1", `{"a":1,`)
	f("93c3", `[true,`)
}

// anyValue draws one MessagePack value as a server may send it.
func anyValue(t *rapid.T, dst []byte, depth int) []byte {
	kind := rapid.IntRange(0, 7).Draw(t, "kind")
	if depth == 0 {
		kind %= 6
	}
	switch kind {
	case 0:
		return msgp.AppendNil(dst)
	case 1:
		return msgp.AppendBool(dst, rapid.Bool().Draw(t, "bool"))
	case 2:
		return msgp.AppendUint64(dst, rapid.Uint64().Draw(t, "uint"))
	case 3:
		return msgp.AppendInt64(dst, rapid.Int64Max(-1).Draw(t, "int"))
	case 4:
		return msgp.AppendFloat64(dst, rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "float"))
	case 5:
		return msgp.AppendString(dst, rapid.String().Draw(t, "string"))
	case 6:
		n := rapid.IntRange(0, 20).Draw(t, "array")
		dst = msgp.AppendArrayHeader(dst, uint32(n))
		for range n {
			dst = anyValue(t, dst, depth-1)
		}
	case 7:
		n := rapid.IntRange(0, 20).Draw(t, "map")
		dst = msgp.AppendMapHeader(dst, uint32(n))
		for range n {
			dst = msgp.AppendString(dst, rapid.String().Draw(t, "key"))
			dst = anyValue(t, dst, depth-1)
		}
	}
	return dst
}

func TestJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := anyValue(t, nil, 2)
		text, err := AppendJSON(nil, value)
		if err != nil {
			t.Fatal(err)
		}
		back, err := EncodeJSON(text)
		if err != nil || !bytes.Equal(back, value) {
			t.Fatalf("%x → %s → %x, %v", value, text, back, err)
		}
	})
}

// FuzzAppendJSON: whatever is shown is JSON.
func FuzzAppendJSON(f *testing.F) {
	f.Add([]byte{0x82, 0xa1, 'b', 1, 0xa1, 'a', 0x93, 0xc3, 0xc2, 0xc0})
	f.Add([]byte{0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, value []byte) {
		if text, err := AppendJSON(nil, value); err == nil && !json.Valid(text) {
			t.Fatalf("%x became %s", value, text)
		}
	})
}

// FuzzEncodeJSON: whatever is taken is JSON, and comes out as one value.
func FuzzEncodeJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,-2.5e3,"x",null,true]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		value, err := EncodeJSON(text)
		if err != nil {
			return
		}
		if !json.Valid(text) {
			t.Fatalf("%q is no JSON but became %x", text, value)
		}
		if rest, err := msgp.Skip(value); err != nil || len(rest) != 0 {
			t.Fatalf("%q became %x", text, value)
		}
	})
}
