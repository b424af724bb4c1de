package orchestration

import (
	"bytes"
	"errors"
	"testing"

	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
	"trunkline/engine/connection"
	"trunkline/engine/envelope"
)

// samples has a change of every kind, and of every form that one may take.
func samples() []Change {
	at := connection.Instant{Mono: 7, Wall: 1_700_000_000_000}
	table := transcode.AppendMsgPack(nil, []byte(`{"a":1}`))
	report := Report{ProcessID: []byte("p"), AgentName: []byte("a"), Failed: true, Error: []byte("e"), Output: table, LLMCalls: 1, ToolCalls: 2,
		TokensIn: 3, HasTokensIn: true, TokensOut: 4, HasTokensOut: true}
	refs := []SessionRef{{[]byte("p"), 1}, {[]byte("q"), 2}}
	return []Change{
		{Kind: ChangeEnvelope, At: at, ID: []byte("e"), Envelope: table},
		{Kind: ChangeEnvelopeDrop, At: at, ID: []byte("e")},
		{Kind: ChangeSession, At: at, PID: []byte("p"), Seq: 9, Pipeline: table, Envelope: table, To: 3},
		{Kind: ChangeReport, At: at, PID: []byte("p"), Seq: 9, Report: report, To: 2, Edge: 1},
		{Kind: ChangeReport, At: at, PID: []byte("p"), Seq: 9, Report: Report{ProcessID: []byte("p"), AgentName: []byte("a")}, Edge: -1,
			Reason: envelope.CompletedSuccessfully, Text: []byte("t")},
		{Kind: ChangeEnd, At: at, PID: []byte("p"), Seq: 9, Reason: envelope.UserCancelled, Text: []byte("t")},
		{Kind: ChangeAnswer, At: at, Waiting: refs, Interrupt: table},
		{Kind: ChangeAnswer, At: at, Waiting: refs, Interrupt: mpack.AppendNil(nil)},
		{Kind: ChangeAnswer, At: at, Waiting: refs[:1]},
		{Kind: ChangeSessionDrop, At: at, PID: []byte("p"), Seq: 9},
	}
}

func TestChangesAreReadAsWritten(t *testing.T) {
	for _, c := range samples() {
		b := AppendChange(nil, &c)
		var got Change
		if err := ParseChange(b, &got); err != nil {
			t.Errorf("%s: %v", c.Kind, err)
			continue
		}
		if again := AppendChange(nil, &got); !bytes.Equal(again, b) || got.Kind != c.Kind || got.At != c.At || got.Reason != c.Reason {
			t.Errorf("%s: %x, want %x", c.Kind, again, b)
		}
		for n := range b {
			if err := ParseChange(b[:n], &got); !errors.Is(err, ErrBadChange) {
				t.Errorf("%s cut at %d: %v", c.Kind, n, err)
			}
		}
		if err := ParseChange(append(b, 0xc0), &got); !errors.Is(err, ErrBadChange) {
			t.Errorf("%s with more behind: %v", c.Kind, err)
		}
	}
}

// TestChangesThatDoNotFit: a change that cannot come from this engine is refused and
// changes nothing; one about a session that is gone has no effect.
func TestChangesThatDoNotFit(t *testing.T) {
	for _, c := range samples() {
		o := New(Config{})
		err := o.Apply(&Call{}, &c, 1)
		wrong := c.Kind == ChangeEnvelope || c.Kind == ChangeSession // their maps are no envelope and no pipeline
		if errors.Is(err, errNotApplicable) != wrong || o.Stats() != (Stats{}) {
			t.Errorf("%s: %v, %+v", c.Kind, err, o.Stats())
		}
	}
}

// TestEndsAreToldOnceAndAfterBeginnings: whatever comes first, the insertion's own word or the
// eviction.
func TestEndsAreToldOnceAndAfterBeginnings(t *testing.T) {
	f := func(what string, do func(o *Engine, s *session, born, gone *Change), want ...ChangeKind) {
		t.Helper()
		var told []ChangeKind
		o := New(Config{Journal: func(c *Change) uint64 { told = append(told, c.Kind); return uint64(len(told)) }})
		do(o, &session{}, &Change{Kind: ChangeSession}, &Change{Kind: ChangeSessionDrop})
		if len(told) != len(want) {
			t.Fatalf("%s: told %v, want %v", what, told, want)
		}
		for i := range want {
			if told[i] != want[i] {
				t.Errorf("%s: told %v, want %v", what, told, want)
			}
		}
	}
	bear := func(o *Engine, s *session, born, gone *Change) { o.bear(&Call{}, &s.history, born, gone) }
	bury := func(o *Engine, s *session, _, gone *Change) { o.bury(&s.history, gone) }
	f("born", bear, ChangeSession)
	f("never told", bury)
	f("born, buried twice", func(o *Engine, s *session, b, g *Change) { bear(o, s, b, g); bury(o, s, b, g); bury(o, s, b, g) }, ChangeSession, ChangeSessionDrop)
	f("buried, then born", func(o *Engine, s *session, b, g *Change) { bury(o, s, b, g); bear(o, s, b, g) }, ChangeSession, ChangeSessionDrop)
}

// FuzzChange: whatever a record holds, reading it and applying it ends in an error or in a state.
func FuzzChange(f *testing.F) {
	for _, c := range samples() {
		f.Add(AppendChange(nil, &c))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var c Change
		if ParseChange(b, &c) != nil {
			return
		}
		if again := AppendChange(nil, &c); ParseChange(again, &c) != nil {
			t.Fatalf("%x was read, %x is not", b, again)
		}
		New(Config{}).Apply(&Call{}, &c, 1)
	})
}
