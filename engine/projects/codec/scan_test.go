package codec

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"trunkline/engine/projects/errcode"
)

const someID = "11111111-2222-4333-8444-aaaaaaaaaaaa"

// envelopeOf returns a request with the given members instead of the usual ones.
func envelopeOf(change ...string) string {
	members := []string{`"ipc_version":"1.0"`, `"type":"request"`, `"request_id":"` + someID + `"`, `"sent_at":"2026-01-15T00:00:00Z"`, `"command":"Pause"`, `"payload":{}`}
	for _, c := range change {
		name, _, _ := strings.Cut(c, ":")
		for i, m := range members {
			if strings.HasPrefix(m, name+":") {
				members[i] = c
			}
		}
		if !strings.HasPrefix(strings.Join(members, ","), c) && !strings.Contains(strings.Join(members, ","), c) {
			members = append(members, c)
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// TestTimes: exacta §3.2 takes these and no others.
func TestTimes(t *testing.T) {
	for _, s := range []string{"2026-01-15T00:00Z", "2026-01-15T00:00", "2026-01-15T23:59:59.123456789+05", "2024-02-29T00:00:60-0530", "2026-01-15T00:00:00.1-05:30", "2000-02-29T00:00:00"} {
		if !isTime([]byte(s)) {
			t.Errorf("%s is refused", s)
		}
	}
	for _, s := range []string{"", "2026-01-15", "2026-01-15 00:00Z", "2026-13-15T00:00Z", "2026-02-29T00:00Z", "1900-02-29T00:00Z", "2026-04-31T00:00Z", "2026-01-15T24:00Z", "2026-01-15T00:60Z",
		"2026-01-15T00:00:61Z", "2026-01-15T00:00:00.Z", "2026-01-15T00:00:00.1234567890Z", "2026-01-15T00:00z", "2026-01-15T00:00+5", "2026-01-15T00:00+05:", "2026-01-15T00:00+05:3x", "2026-01-15T00:00+24",
		"2026-01-00T00:00Z", "2026-00-01T00:00Z", "x026-01-15T00:00Z", "2026-01-15T00:00:0Z", "2026-01-15T00:00Z "} {
		if isTime([]byte(s)) {
			t.Errorf("%s is taken", s)
		}
	}
}

// TestClock: the form is that of the standard library (exacta §6.3).
func TestClock(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		at := time.UnixMicro(random.Int64N(250_000_000_000_000_000))
		if got, want := FixedClock(at).Text(), at.UTC().Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Fatalf("%s, want %s", got, want)
		} else if got := (Clock{}).At(at.UnixMilli()).Text(); at.UnixMilli() != 0 && got != want {
			t.Fatalf("a reading of %s shows %s", want, got)
		}
	}
	if at := FixedClock(time.Unix(7, 0)); at.At(1) != at || (Clock{}).At(0) != (Clock{}) {
		t.Error("a reading changes a clock that stands, or there is none")
	}
}

// TestEveryDigit: each byte in its place, and no other text.
func TestEveryDigit(t *testing.T) {
	const text = "01234567-89ab-cdef-1032-547698badcfe"
	id, ok := ParseID([]byte(strings.ToUpper(text)))
	if !ok || id != (ID{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe}) || id.String() != text {
		t.Fatalf("%x", id)
	}
	for i := range len(text) {
		fits := "0123456789abcdefABCDEF"
		if text[i] == '-' {
			fits = "-"
		}
		for c := range 256 {
			b := []byte(text)
			b[i] = byte(c)
			if _, ok := ParseID(b); ok != (strings.IndexByte(fits, byte(c)) >= 0) {
				t.Errorf("%q is taken: %v", b, ok)
			}
		}
	}
}

// TestVersions: two numbers of up to four digits, no leading zero.
func TestVersions(t *testing.T) {
	for _, s := range []string{"0.0", "1.0", "1.7", "9999.9999", "10.0"} {
		if _, ok := ParseVersion([]byte(s)); !ok {
			t.Errorf("%s is refused", s)
		}
	}
	for _, s := range []string{"", "1", "1.", ".0", "01.0", "1.00", "10000.0", "1.0.0", " 1.0", "-1.0", "1.x"} {
		if _, ok := ParseVersion([]byte(s)); ok {
			t.Errorf("%s is taken", s)
		}
	}
}

// TestOrderOfChecks: the first failure wins (exacta §3.6).
func TestOrderOfChecks(t *testing.T) {
	bad := []string{`"ipc_version":7`, `"type":7`, `"request_id":7`, `"sent_at":7`, `"command":7`, `"payload":7`, `"timeout_ms":0`}
	want := []string{"invalid:ipc_version", "invalid:type", "invalid:request_id", "invalid:sent_at", "invalid:command", "invalid:payload", "timeout_ms: an integer from 1 to 3600000 is expected"}
	var s Scanner
	for i := range bad {
		var m Message
		if r := s.Scan([]byte(envelopeOf(bad[i:]...)), &m); r.Detail+r.Field != want[i] {
			t.Errorf("%v: %s%s, want %s", bad[i:], r.Detail, r.Field, want[i])
		}
		if echoed := m.RequestID != nil; echoed != (i > 2) {
			t.Errorf("%v: the request_id is echoed: %v", bad[i:], echoed)
		}
	}
}

// TestFlatForm: what is absent is read in the payload, and the top level counts (exacta §2.3).
func TestFlatForm(t *testing.T) {
	var s Scanner
	f := func(line, code, id string, timeout int64) {
		t.Helper()
		var m Message
		r := s.Scan([]byte(line), &m)
		if r.Code != code || string(m.RequestID) != id || m.Timeout != timeout {
			t.Errorf("%s: %s %s%s, id %q, timeout %d", line, r.Code, r.Detail, r.Field, m.RequestID, m.Timeout)
		}
	}
	inner := `"ipc_version":"1.0","request_id":"` + someID + `","sent_at":"2026-01-15T00:00Z"`
	f(`{"type":"request","command":"Pause","payload":{`+inner+`}}`, "", someID, 0)
	f(`{"type":"request","command":"Pause","payload":{"ipc_version":"\u0031.0","request_id":"`+someID+`","sent_at":"2026-01-15T00:00Z"}}`, "", someID, 0)
	f(`{"type":"request","ipc_version":"2.0","command":"Pause","payload":{`+inner+`}}`, "IPC-002", someID, 0)
	f(`{"type":"request","command":"Pause","payload":[{`+inner+`}]}`, "IPC-001", "", 0)
	f(envelopeOf(`"payload":{"timeout_ms":7}`, `"timeout_ms":9`), "", someID, 7)
	f(envelopeOf(`"payload":{"timeout_ms":9}`, `"timeout_ms":7`), "", someID, 7)
	f(envelopeOf(`"payload":{"timeout_ms":null}`), "IPC-009", someID, 0)
	f(envelopeOf(`"timeout_ms":3600000`), "", someID, 3600000)
	f(envelopeOf(`"timeout_ms":3600001`), "IPC-009", someID, 0)
	f(envelopeOf(`"payload":{"__proto__":1,"n":1e999,"u":"\ud83d\ude00"}`), "", someID, 0)
	f(envelopeOf(`"payload":{"__proto__":1,"u":"\ude00"}`), "IPC-001", "", 0)
	f(envelopeOf(`"payload":{"__proto__":1,"u":"\ud83dx"}`), "IPC-001", "", 0)
	f(
		envelopeOf(`"payload":{"__proto__":1,"n":1e999,"d":`+strings.Repeat("[", 31)+strings.Repeat("]", 31)+"}"),
		"IPC-001",
		"",
		0,
	)
	f(
		envelopeOf(`"payload":{"__proto__":1,"n":1e999,"d":`+strings.Repeat("[", 30)+strings.Repeat("]", 30)+"}"),
		"",
		someID,
		0,
	)
	f(envelopeOf(`"payload":{"n":1e999,"a":1,"a":1}`), "IPC-001", "", 0)
}

// TestIDs: a seed gives the ids of the worked examples (exacta §9), none gives random ones.
func TestIDs(t *testing.T) {
	server, p1 := NewScope("t1", "server"), NewScope("t1", "p1")
	for want, got := range map[string]ID{
		"3bc566cf-3909-5250-87c2-645a45a2357d": server.Next(Session),
		"cd6389d6-5643-5997-9b3b-0ca9b25a1497": server.ProjectID("/x"),
		"f050b775-dbbe-55b1-8c21-2aae83a59550": p1.Next(EventID),
		"b41ba1cc-c76c-5bc0-9d66-b80524bf898e": p1.Next(Rollback),
		"14275667-7c61-5ef4-8f2b-68ae2515b834": p1.Next(Execution),
		"a21e8ae3-3e69-5037-83b7-0a31560457a5": p1.Next(Step),
		"73b01c65-49e7-5e31-9bd7-c1a5a7e90bd1": p1.Next(Plan),
		"a527eeb2-7757-520a-b04f-7970a5235ba0": p1.Next(Intent),
		"d9e45adc-b39f-545e-8109-572920649703": p1.Next(Correlation),
	} {
		if got.String() != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	random := NewScope("", "server")
	a, b := random.Next(Plan), random.Next(Plan)
	if a == b || a[6]>>4 != 4 || a[8]>>6 != 2 {
		t.Errorf("%s and %s are no random ids", a, b)
	}
	if one, two := random.ProjectID("/x"), random.ProjectID("/x"); one != two || one[6]>>4 != 5 {
		t.Errorf("%s and %s for one root", one, two)
	}
}

// TestText: the escapes of exacta §3.1 and no others.
func TestText(t *testing.T) {
	in := "\"\\\n\r\t\b\f\x01\u2028<>&é\u2029😀\u2027"
	want := "\"\\\"\\\\\\n\\r\\t\\b\\f\\u0001\\u2028<>&é\\u2029😀\u2027\""
	if got := string(AppendText(nil, in)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := Clip(strings.Repeat("é", 10), 8); got != "éé…" {
		t.Errorf("cut to %q", got)
	}
}

// TestPrepared: what is prepared is the same response.
func TestPrepared(t *testing.T) {
	f := errcode.New("ST-001", "a \"detail\"", "Idle", "Paused")
	id, _ := ParseID([]byte(someID))
	for _, clock := range []Clock{FixedClock(time.Unix(1, 0)), Clock{}.At(7)} {
		want := AppendFailure([]byte("x"), []byte(strings.ToUpper(someID)), id, clock, f)
		if got := Prepare(f).Append([]byte("x"), []byte(strings.ToUpper(someID)), id, clock); string(got) != string(want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
