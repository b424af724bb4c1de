package journaltool

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
	"trunkline/engine/envelope"
	"trunkline/engine/journal"
	"trunkline/engine/kernel"
	"trunkline/engine/orchestration"
)

// exported returns the indexes of the lines, which must be JSON.
func exported(t *testing.T, dir string, in Range) (indexes []uint64, done Exported) {
	t.Helper()
	var out bytes.Buffer
	done, err := Export(t.Context(), dir, in, &out, nothing{})
	must(t, err)
	for line := range strings.Lines(out.String()) {
		var l struct {
			Index uint64 `json:"index"`
			Kind  string `json:"kind"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Kind == "" {
			t.Fatalf("%s: %v", line, err)
		}
		indexes = append(indexes, l.Index)
	}
	if n := len(indexes); n > 0 && done.Damages == 0 { // the last line counts the others
		if indexes[n-1] != 0 || !strings.HasSuffix(out.String(), fmt.Sprintf(`{"kind":"end","lines":%d}`+"\n", n-1)) {
			t.Errorf("%+v ends %.200s", in, out.String()[max(out.Len()-200, 0):])
		}
		indexes = indexes[:n-1]
	}
	return indexes, done
}

func TestExportOfARange(t *testing.T) {
	dir := made(t, plan{groups: 4})
	f := func(in Range, first, last uint64) {
		t.Helper()
		got, done := exported(t, dir, in)
		if uint64(len(got)) != last-first+1 || first != 0 && (got[0] != first || got[len(got)-1] != last) {
			t.Errorf("%+v: %v, want %d to %d", in, got, first, last)
		}
		if first != 0 && (done.First != first || done.Last != last || done.Lines != uint64(len(got))) || done.Damages != 0 {
			t.Errorf("%+v: %+v", in, done)
		}
	}
	f(Range{}, 1, 45)
	f(Range{From: 1}, 1, 45)
	f(Range{From: 1, To: 45}, 1, 45)
	f(Range{From: 45}, 45, 45)
	f(Range{From: 45, To: 99}, 45, 45)
	f(Range{To: 1}, 1, 1)
	f(Range{From: 5, To: 25}, 5, 25)
	f(Range{From: 12, To: 14}, 12, 14)
	if got, done := exported(t, dir, Range{From: 46}); len(got) != 0 || done.Lines != 0 || done.Damages != 0 {
		t.Errorf("behind the end: %v %+v", got, done)
	}
}

func TestExportTellsOfDamage(t *testing.T) {
	dir := made(t, plan{groups: 4, record: mixed, spoil: func(first journal.Index, b []byte) []byte {
		if first == 14 {
			return nil
		}
		return b
	}})
	got, done := exported(t, dir, Range{})
	if len(got) != 35 || done.Damages != 1 || done.Damage == nil || done.Unreadable != 1 {
		t.Errorf("%d lines, %+v", len(got), done)
	}
	if _, done = exported(t, dir, Range{To: 13}); done.Damages != 0 {
		t.Errorf("before it: %+v", done)
	}
	if _, done = exported(t, dir, Range{From: 24}); done.Damages != 0 {
		t.Errorf("behind it: %+v", done)
	}
}

// full is a writer that takes n bytes.
type full struct{ n int }

func (f *full) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestExportToAWriterThatFails(t *testing.T) {
	dir := made(t, plan{groups: 400})
	for _, n := range []int{0, 70_000} {
		if _, err := Export(t.Context(), dir, Range{}, &full{n}, nothing{}); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

// shown is a record as an export shows it, from its kind on.
func shown(t *testing.T, rec []byte) string {
	t.Helper()
	dir := made(t, plan{groups: 1, record: func(int) []byte { return rec }})
	var out bytes.Buffer
	_, err := Export(t.Context(), dir, Range{From: 2, To: 2}, &out, nothing{})
	must(t, err)
	line, _, _ := strings.Cut(out.String(), "\n")
	if !json.Valid([]byte(line)) {
		t.Errorf("no JSON: %s", line)
	}
	_, fields, _ := strings.Cut(line, `"epoch":1,"kind":`)
	fields, stored, _ := strings.Cut(strings.TrimSuffix(fields, `"}`), `,"base64":"`)
	if b, err := base64.StdEncoding.DecodeString(stored); err != nil || !bytes.Equal(b, rec) {
		t.Errorf("stored as %q, want %q: %v", b, rec, err)
	}
	return fields
}

func TestKernelChangesAreShown(t *testing.T) {
	seen := make(map[kernel.ChangeKind]bool)
	f := func(c kernel.Change, want string) {
		t.Helper()
		seen[c.Kind] = true
		if got := shown(t, kernel.AppendChange([]byte{'k'}, &c)); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	p := []byte("p\n\xff")
	const pid = `"pid":"p\n` + "\ufffd" + `"`
	quota := strings.Repeat(",%q:0", 14)
	names := make([]any, 14)
	for i := range names {
		names[i] = kernel.QuotaField(i).String()
	}
	quota = `"quota":{` + fmt.Sprintf(quota, names...)[1:] + "}"
	f(kernel.Change{Kind: kernel.ChangeCreate, PID: p, UserID: []byte("u"), Seq: 3, Priority: kernel.High},
		`"kernel.create",`+pid+`,"user_id":"u","state":"NEW","priority":"HIGH","seq":3,"ready_seq":0,`+quota)
	f(kernel.Change{Kind: kernel.ChangeTransition, PID: p, State: kernel.Blocked, At: 5, Reason: []byte("why")},
		`"kernel.transition",`+pid+`,"state":"BLOCKED","at_mono_ns":5,"ready_seq":0,"reason":"why"`)
	f(kernel.Change{Kind: kernel.ChangeLease, PID: p, Expiry: 7}, `"kernel.lease",`+pid+`,"expiry_mono_ns":7`)
	f(kernel.Change{Kind: kernel.ChangeLease, PID: p, Expiry: math.MaxInt64}, `"kernel.lease",`+pid+`,"expiry_mono_ns":null`)
	f(kernel.Change{Kind: kernel.ChangeLeaseEnd, PID: p}, `"kernel.lease_end",`+pid)
	f(kernel.Change{Kind: kernel.ChangeRequeue, PID: p}, `"kernel.requeue",`+pid)
	f(kernel.Change{Kind: kernel.ChangeRemove, PID: p}, `"kernel.remove",`+pid)
	f(kernel.Change{Kind: kernel.ChangeUsage, PID: p, Usage: kernel.Usage{kernel.LLMCalls: 1, kernel.InferenceInputChars: 8}},
		`"kernel.usage",`+pid+`,"usage":{"llm_calls":1,"tool_calls":0,"agent_hops":0,"tokens_in":0,"tokens_out":0,"iterations":0,"inference_requests":0,"inference_input_chars":8}`)
	f(kernel.Change{Kind: kernel.ChangeQuotaDefaults}, `"kernel.quota_defaults",`+quota)
	f(kernel.Change{Kind: kernel.ChangeRateStamp, UserID: p, At: -1}, `"kernel.rate_stamp","user_id":"p\n`+"\ufffd"+`","at_mono_ns":-1`)
	f(kernel.Change{Kind: kernel.ChangeRateDrop, UserID: []byte("u")}, `"kernel.rate_drop","user_id":"u"`)
	for kind := kernel.ChangeCreate; kind.String() != "unknown"; kind++ {
		if !seen[kind] {
			t.Errorf("no %s is shown: see appendKernel in export.go", kind)
		}
	}
}

func TestOrchestrationChangesAreShown(t *testing.T) {
	table := mpack.AppendInt(mpack.AppendStr(mpack.AppendMap(nil, 1), []byte("v")), 1)
	f := func(c orchestration.Change, want string) {
		t.Helper()
		c.At.Mono, c.At.Wall = 2, 1000
		want = strings.Replace(want, ",", `,"at":"1970-01-01T00:00:01Z","at_mono_ns":2,`, 1)
		if got := shown(t, orchestration.AppendChange([]byte{'o'}, &c)); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	p := []byte("p")
	f(orchestration.Change{Kind: orchestration.ChangeEnvelope, ID: []byte("e"), Envelope: table}, `"orchestration.envelope","envelope_id":"e","envelope":{"v":1}`)
	f(orchestration.Change{Kind: orchestration.ChangeEnvelopeDrop, ID: []byte("e")}, `"orchestration.envelope_drop","envelope_id":"e"`)
	f(orchestration.Change{Kind: orchestration.ChangeSession, PID: p, Seq: 4, Pipeline: table, Envelope: table, To: 1},
		`"orchestration.session","process_id":"p","session":4,"to_stage":1,"pipeline":{"v":1},"envelope":{"v":1}`)
	f(orchestration.Change{Kind: orchestration.ChangeEnd, PID: p, Reason: envelope.UserCancelled, Text: []byte("t")},
		`"orchestration.end","process_id":"p","session":0,"terminal_reason":"`+envelope.UserCancelled.Wire()+`","text":"t"`)
	f(orchestration.Change{Kind: orchestration.ChangeSessionDrop, PID: p, Seq: 4}, `"orchestration.session_drop","process_id":"p","session":4`)
	f(orchestration.Change{Kind: orchestration.ChangeReport, PID: p, Edge: -1, Report: orchestration.Report{AgentName: []byte("a"), Output: table, TokensIn: 3, HasTokensIn: true}},
		`"orchestration.report","process_id":"p","session":0,"agent_name":"a","success":true,"output":{"v":1},"llm_calls":0,"tool_calls":0,"tokens_in":3,"to_stage":0,"edge":-1`)
	f(orchestration.Change{Kind: orchestration.ChangeAnswer, Waiting: []orchestration.SessionRef{{PID: p, Seq: 1}, {PID: p, Seq: 2}}, Interrupt: table},
		`"orchestration.answer","waiting":[{"process_id":"p","session":1},{"process_id":"p","session":2}],"interrupt":{"v":1}`)
}

func TestWhatIsNoChangeIsShown(t *testing.T) {
	if got := shown(t, []byte("?x")); !strings.HasPrefix(got, `"unreadable","error":"cannot parse change`) {
		t.Error(got)
	}
	o := appendValue(jsonx.Build(nil), "v", []byte{0xc1}) // no value of MessagePack
	if got := string(o.End()); got != `{"v_base64":"wQ=="}` {
		t.Error(got)
	}
}

// nothing is a Meter that shows nothing.
type nothing struct{}

func (nothing) Begin(string, string, uint64) {}
func (nothing) Set(uint64)                   {}
