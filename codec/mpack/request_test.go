package mpack

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"
	"pgregory.net/rapid"
)

func parse(payload string) (Request, Problem) {
	var sc Scanner
	var r Request
	p := sc.ParseRequest([]byte(payload), &r)
	return r, p
}

func TestParseRequestProblems(t *testing.T) {
	f := func(payload string, want Problem, wantID string) {
		t.Helper()
		r, got := parse(payload)
		if got != want || string(r.ID) != wantID {
			t.Errorf("ParseRequest(%x) = %q with id %q, want %q with %q", payload, got.Text(), r.ID, want.Text(), wantID)
		}
	}
	id := "\xa2id\xa1x"
	f("", Truncated, "")
	f("\xc1", NeverUsed, "")
	f("\xc4\x00", BinOrExt, "")                         // bin 8
	f("\xd4\x00\x00", BinOrExt, "")                     // fixext 1
	f("\xc0", NoProblem, "")                            // nil: well formed, no map
	f("\xc0\xc0", TrailingBytes, "")                    //
	f("\x81", Truncated, "")                            //
	f("\x82"+id, Truncated, "x")                        // the id was complete before the fault
	f("\x81"+id+"\x00", TrailingBytes, "x")             //
	f("\x82"+id+"\x01\x01", KeyNotString, "x")          // int key
	f("\x82"+id+"\xc1", NeverUsed, "x")                 // key
	f("\x82"+id+"\xa1k\xa1\xff", BadUTF8, "x")          //
	f("\x82"+id+"\xa1\xff\xc0", BadUTF8, "x")           // key
	f("\x82"+id+"\xa2id\xa1\xff", BadUTF8, "x")         // a faulty repetition does not undo the first
	f("\x82"+id+"\xa1k\xc7\x01\x00\x00", BinOrExt, "x") // ext 8
	f("\x82"+id+"\xa1k\x81\x01\x01", KeyNotString, "x") // int key one level down
	f("\x82"+id+"\xa1k\x92\x01", Truncated, "x")        //
	f("\x82"+id+"\xa1k\xdb\xff\xff\xff\xff", Truncated, "x")
	f("\x82"+id+"\xa1k\xdd\xff\xff\xff\xff", Truncated, "x") // announces more elements than bytes
	f("\x82"+id+"\xa1k\xdf\xff\xff\xff\xff", Truncated, "x")
	f("\x82"+id+"\xa1k\xcf\x00", Truncated, "x")
	f("\x82"+id+"\xa1k\xd9", Truncated, "x")
	f("\x82"+id+"\xa1k\xda\x00", Truncated, "x")
}

func TestDepthAtLimitAndOneMore(t *testing.T) {
	f := func(levels int, want Problem) {
		t.Helper()
		// The top-level map is level one, so levels-1 arrays stand inside it.
		payload := "\x82\xa2id\xa1x\xa1k" + strings.Repeat("\x91", levels-1) + "\xc0"
		if r, p := parse(payload); p != want || string(r.ID) != "x" {
			t.Errorf("%d levels: %q, want %q", levels, p.Text(), want.Text())
		}
		top := strings.Repeat("\x91", levels) + "\xc0"
		if _, p := parse(top); p != want {
			t.Errorf("%d levels of arrays: %q, want %q", levels, p.Text(), want.Text())
		}
	}
	f(511, NoProblem)
	f(512, NoProblem)
	f(513, TooDeep)
	f(5000, TooDeep)
}

func TestParseRequestMembers(t *testing.T) {
	f := func(payload, id, service, method, body string, other bool) {
		t.Helper()
		r, p := parse(payload)
		if p != NoProblem || string(r.ID) != id || string(r.Service) != service || string(r.Method) != method ||
			string(r.Body) != body || r.BodyIsOther != other {
			t.Errorf("ParseRequest(%x) = %q %+v", payload, p.Text(), r)
		}
	}
	whole := string(AppendRequest(nil, "7", "kernel", "GetProcess", "\x81\xa3pid\xa1p"))
	f(whole, "7", "kernel", "GetProcess", "\x81\xa3pid\xa1p", false)
	f("\x84\xa4body\x80\xa6method\xa1m\xa7service\xa1s\xa2id\xa1i", "i", "s", "m", "\x80", false) // any order
	f("\x83\xa2id\xa1i\xa2id\xa1j\xa4body\x80", "j", "", "", "\x80", false)                       // the last one counts
	f("\x82\xa2id\xa1i\xa2id\xc0", "", "", "", "", false)                                         // also when it is nil
	f("\x82\xa2id\x07\xa4body\xc0", "", "", "", "", false)
	f("\x81\xa4body\x93\x01\x02\x03", "", "", "", "", true)
	f("\x81\xa4body\xca\x7f\xc0\x00\x00", "", "", "", "", false) // NaN reads as nil
	f("\x81\xa4body\xca\x00\x00\x00\x00", "", "", "", "", true)
	f("\x82\xa4body\x90\xa4body\x80", "", "", "", "\x80", false)
	f("\x82\xa4body\x80\xa4body\x90", "", "", "", "", true)
	f("\x82\xd9\x02id\xdb\x00\x00\x00\x01i\xb0protocol_version\x01", "i", "", "", "", false) // other size classes, unknown key
	f("\xde\x00\x01\xa4body\xdf\x00\x00\x00\x00", "", "", "", "\xdf\x00\x00\x00\x00", false)
	f("\x90", "", "", "", "", false)
}

func TestParseFields(t *testing.T) {
	names := []string{"a", "b", "longer_name"}
	want := Fields(names...)
	f := func(body string, kinds ...Kind) [3]Value {
		t.Helper()
		var sc Scanner
		var v [3]Value
		v[0].Kind, v[1].Kind, v[2].Kind = Map, Map, Map // what an earlier request left
		if next, p := sc.ParseFields([]byte(body), 0, want, v[:]); p != NoProblem || next != len(body) {
			t.Errorf("ParseFields(%x) ends at %d: %q", body, next, p.Text())
		}
		for i, k := range kinds {
			if v[i].Kind != k {
				t.Errorf("ParseFields(%x): %s is %d, want %d", body, names[i], v[i].Kind, k)
			}
		}
		return v
	}
	f("\x80", Absent, Absent, Absent)
	v := f("\x83\xablonger_name\xa2hi\xa1b\xc3\xa1a\xff", Int, Bool, Str)
	if v[0].Int != -1 || v[1].Int != 1 || string(v[2].Data) != "hi" {
		t.Errorf("got %+v", v)
	}
	v = f("\x83\xa1x\x92\x01\x81\xa1y\x02\xa1a\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xa1b\xca\x40\x00\x00\x00", BigUint, Float, Absent)
	if uint64(v[0].Int) != 1<<64-1 {
		t.Errorf("got %d", uint64(v[0].Int))
	}
	f("\x82\xa1a\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00\xa1b\xca\x7f\xc0\x00\x00", Nil, Nil, Absent) // +Inf, NaN
	v = f("\x83\xa1a\x01\xa1a\x02\xa1b\x91\x05", Int, Array, Absent)
	if v[0].Int != 2 || string(v[1].Data) != "\x91\x05" {
		t.Errorf("got %+v", v)
	}
	for in, want := range map[string]int64{
		"\x7f": 127, "\xe0": -32, "\xcc\xff": 255, "\xcd\xff\xff": 65535, "\xce\xff\xff\xff\xff": 1<<32 - 1, "\xcf\x00\x00\x00\x00\x00\x00\x00\x05": 5,
		"\xd0\x80": -128, "\xd1\x80\x00": -32768, "\xd2\x80\x00\x00\x00": -1 << 31, "\xd3\x80\x00\x00\x00\x00\x00\x00\x00": -1 << 63,
	} {
		if v := f("\x81\xa1a"+in, Int); v[0].Int != want {
			t.Errorf("%x is %d, want %d", in, v[0].Int, want)
		}
	}
}

func TestElements(t *testing.T) {
	var sc Scanner
	body := AppendStr(AppendStr(AppendArray(nil, 3), "a"), "b")
	body = AppendInt(body, 5)
	var kinds []Kind
	sc.Elements(body, func(i int, v Value) bool { kinds = append(kinds, v.Kind); return i < 1 })
	if Len(body) != 3 || len(kinds) != 2 || kinds[0] != Str {
		t.Fatalf("got %d %v", Len(body), kinds)
	}
	if Len([]byte{0x80}) != 0 || Len(nil) != 0 {
		t.Fatal("only arrays have elements")
	}
}

// value draws a tree of the profile and encodes it with the reference library.
func value(t *rapid.T, depth int) []byte {
	kind := rapid.IntRange(0, 7).Draw(t, "kind")
	switch {
	case kind == 0:
		return msgp.AppendNil(nil)
	case kind == 1:
		return msgp.AppendBool(nil, rapid.Bool().Draw(t, "bool"))
	case kind == 2:
		return msgp.AppendInt64(nil, rapid.Int64().Draw(t, "int"))
	case kind == 3:
		return msgp.AppendFloat64(nil, rapid.Float64().Draw(t, "float"))
	case kind <= 5 || depth > 4:
		return msgp.AppendString(nil, rapid.String().Draw(t, "string"))
	case kind == 6:
		n := rapid.IntRange(0, 20).Draw(t, "n")
		b := msgp.AppendArrayHeader(nil, uint32(n))
		for range n {
			b = append(b, value(t, depth+1)...)
		}
		return b
	}
	n := rapid.IntRange(0, 20).Draw(t, "n")
	b := msgp.AppendMapHeader(nil, uint32(n))
	for range n {
		b = append(msgp.AppendString(b, rapid.String().Draw(t, "key")), value(t, depth+1)...)
	}
	return b
}

func TestScannerTakesWhatTheReferenceWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := value(t, 0)
		var sc Scanner
		if next, p := sc.skip(b, 0, 0); p != NoProblem || next != len(b) {
			t.Fatalf("skip(%x) = %d, %q", b, next, p.Text())
		}
		for cut := range b {
			if _, p := sc.skip(b[:cut], 0, 0); p == NoProblem {
				t.Fatalf("%d of %d bytes pass as a whole value", cut, len(b))
			}
		}
	})
}

func TestRequestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id, service := rapid.String().Draw(t, "id"), rapid.String().Draw(t, "service")
		method := rapid.String().Draw(t, "method")
		body := append(msgp.AppendString(msgp.AppendMapHeader(nil, 1), rapid.String().Draw(t, "key")), value(t, 0)...)
		r, p := parse(string(AppendRequest(nil, id, service, method, string(body))))
		if p != NoProblem || string(r.ID) != id || string(r.Service) != service || string(r.Method) != method || !bytes.Equal(r.Body, body) {
			t.Fatalf("got %q %+v", p.Text(), r)
		}
	})
}

func TestParseHeadIsExactlyTheUsualForm(t *testing.T) {
	f := func(payload string, want bool) {
		t.Helper()
		var r Request
		body, ok := ParseHead([]byte(payload), &r)
		if ok != want {
			t.Errorf("ParseHead(%x) = %v, want %v", payload, ok, want)
		}
		if ok && (string(r.ID) != "i" || string(r.Service) != "s" || string(r.Method) != "m" || payload[body]&0xf0 != 0x80) {
			t.Errorf("ParseHead(%x) = %d %+v", payload, body, r)
		}
	}
	usual := string(AppendRequest(nil, "i", "s", "m", "\x80"))
	f(usual, true)
	for n := range usual {
		f(usual[:n], false)
	}
	f(string(AppendRequest(nil, "i", "s", "m", "\x90")), false)
	f(string(AppendRequest(nil, "\xff", "s", "m", "\x80")), false)
	f(string(AppendRequest(nil, "", "s", "m", "\x80")), false)
	f(string(AppendRequest(nil, strings.Repeat("i", 32), "s", "m", "\x80")), false)
	f(strings.Replace(usual, "\x84", "\x85", 1)+"\xa1x\x00", false)
	f(strings.Replace(usual, "method", "methoX", 1), false)
	f(strings.Replace(usual, "body", "bodX", 1), false)
	f(strings.Replace(usual, "service", "servicX", 1), false)
	f(usual+"\x00", true) // what follows is ParseFields' to find
}
