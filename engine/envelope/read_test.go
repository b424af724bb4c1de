package envelope

import (
	"fmt"
	"testing"

	"trunkline/codec/transcode"
)

func TestReading(t *testing.T) {
	const src = `{"envelope_id":"\u0065","user_id":null,"raw_input":"a\nb","terminated":true,"tokens_in":9007199254740993,"stage_order":["s\u0031","é"],
		"active_stages":{"a":true,"b":false,"\u0063":true},"completed_stage_set":["x"],"metadata":{"k":1,"n":{"m":"v"},"k":[2],"list":["a",1,"b"]}}`
	for _, form := range [...]Form{JSON, MsgPack} {
		e := decoded(t, form, (parts{form, Flat}).bytes(src))
		f := func(what string, got, want any) {
			t.Helper()
			if fmt.Sprintf("%s", got) != fmt.Sprintf("%s", want) {
				t.Errorf("%v %s: %s, want %s", form, what, got, want)
			}
		}
		f("text", e.Text(EnvelopeID), "e")
		f("default of null", e.Text(UserID), "anonymous")
		f("missing text", e.Text(TerminationReason), []byte(nil))
		f("escapes", e.Text(RawInput), "a\nb")
		f("flag", e.Bool(Terminated), true)
		f("missing flag", e.Bool(ClarificationPending), false)
		f("counter", e.Int(TokensIn), int64(9007199254740993))
		f("missing counter", e.Int(MaxStages), int64(5))
		f("strings", e.strings(StageOrder, nil), "[s1 é]")
		f("no strings", e.strings(AllGoals, nil), "[]")
		meta := e.Value(Metadata).Raw
		f("last of a name", e.Get(meta, "k").Kind, List)
		f("no member", e.Get(meta, "x").Kind, Absent)
		f("member of no map", e.Get(e.Value(StageOrder).Raw, "x").Kind, Absent)
		s, ok := e.Str(e.Get(e.Get(meta, "n").Raw, "m"))
		f("text of a member", s, "v")
		f("is a text", ok, true)
		_, ok = e.Str(e.Get(meta, "k"))
		f("is no text", ok, false)
		f("mixed list", e.textsOf(e.Get(meta, "list"), nil), "[a b]")
	}
}

func TestKindsOfValues(t *testing.T) {
	f := func(text string, inJSON, inMsgPack Kind) {
		t.Helper()
		if got := valueOf(JSON, []byte(" "+text+"\n")).Kind; got != inJSON {
			t.Errorf("%s in JSON: %d, want %d", text, got, inJSON)
		}
		if v := valueOf(MsgPack, transcode.AppendMsgPack(nil, []byte(text))); v.Kind != inMsgPack {
			t.Errorf("%s in MessagePack: %d, want %d", text, v.Kind, inMsgPack)
		}
	}
	for _, n := range [...]string{"0", "127", "128", "-1", "-32", "-33", "-129", "65535", "65536", "4294967296", "-4294967297", "9223372036854775807"} {
		f(n, Float, Int)
		if got, ok := integer(MsgPack, valueOf(MsgPack, transcode.AppendMsgPack(nil, []byte(n)))); !ok || fmt.Sprint(got) != n {
			t.Errorf("%s is read as %d", n, got)
		}
	}
	f("9223372036854775808", Float, Float)
	f("1.5", Float, Float)
	f("true", Bool, Bool)
	f("null", Null, Null)
	f(`"a"`, String, String)
	f(`"0123456789012345678901234567890123456789"`, String, String)
	f(`[]`, List, List)
	f(`[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]`, List, List)
	f(`{}`, Map, Map)
	if valueOf(JSON, nil).Kind != Absent || valueOf(MsgPack, nil).Kind != Absent {
		t.Error("nothing is of a kind")
	}
	if v := valueOf(MsgPack, []byte{0xca, 0x7f, 0xc0, 0, 0}); v.Kind != Null {
		t.Errorf("NaN is of kind %d", v.Kind)
	}
}
