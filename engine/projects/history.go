package projects

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
)

// Limits of what a project remembers for bundles (exacta §4.15).
const (
	maxRecords    = 2000 // of each of the two logs
	maxAnswered   = 50
	maxRecordText = 256 // bytes
)

// RequestID is the id of a request as it was given: a copy, so that nothing else of the request
// stays in memory.
type RequestID struct {
	text [36]byte
}

// Bytes returns the id, nil if no request caused what it is of.
func (r *RequestID) Bytes() []byte {
	if r.text[0] == 0 {
		return nil
	}
	return r.text[:]
}

// Record is one line of a log. It has no content of files, no text of clients and none of planners.
type Record struct {
	At                      time.Time
	Level, Component, Event string
	RequestID               RequestID
	words                   [3]string
	current, total          int
}

// Message returns the text of the record.
func (r *Record) Message() string {
	switch r.Event {
	case "StateChanged":
		return r.words[0] + " → " + r.words[1] + ": " + r.words[2]
	case "Progress":
		return r.words[0] + " " + strconv.Itoa(r.current) + "/" + strconv.Itoa(r.total)
	case "Response":
		return r.words[0] + ": " + r.words[1]
	}
	return r.words[0]
}

// Answered is how a request was answered.
type Answered struct {
	RequestID RequestID
	Command   codec.Command
	Code      string // empty: it was done
}

// Snapshot is what a bundle shows of a project (exacta §4.15). All lists are oldest first.
type Snapshot struct {
	State    State
	Changed  time.Time // of the last transition; zero: there was none
	Requests []Answered
	Logs     []Record // of the level INFO and above
	Debug    []Record // of all levels
	Raised   *errcode.Fault
}

// ring has the last values of a sequence.
type ring[T any] struct {
	list []T
	next int // index of the oldest, once the ring is full
}

// add returns the place of the next value, at most as many as most.
func (r *ring[T]) add(most int) *T {
	if len(r.list) < most {
		r.list = append(r.list, *new(T))
		return &r.list[len(r.list)-1]
	}
	at := r.next
	if r.next++; r.next == most {
		r.next = 0
	}
	return &r.list[at]
}

// all returns a copy, oldest first.
func (r *ring[T]) all() []T { return append(append([]T(nil), r.list[r.next:]...), r.list[:r.next]...) }

// history is what a project remembers of itself.
type history struct {
	changed  time.Time
	requests ring[Answered]
	logs     ring[Record]
	debug    ring[Record]
	raised   *errcode.Fault
}

// note remembers an event. It does not allocate once the ring is full.
func (p *Project) note(level, component, event string, r *Request, words ...string) {
	p.keepRecord(Record{Level: level, Component: component, Event: event}, idOf(r), words)
}

// idOf returns the id of a request as it was given, nil of none.
func idOf(r *Request) []byte {
	if r == nil {
		return nil
	}
	return r.ID
}

// keepRecord completes a record.
func (p *Project) keepRecord(rec Record, id []byte, words []string) {
	if rec.At.IsZero() {
		rec.At = p.Clock.Now()
	}
	copy(rec.RequestID.text[:], id)
	for i := range words {
		rec.words[i] = codec.Clip(words[i], maxRecordText)
	}
	*p.past.debug.add(maxRecords) = rec
	if rec.Level != "DEBUG" {
		*p.past.logs.add(maxRecords) = rec
	}
}

// noteFault remembers a failure that was raised, by the words of its row where its values may come
// from a client, a planner or the tree.
func (p *Project) noteFault(r *Request, f *errcode.Fault) {
	kept := &errcode.Fault{Code: f.Code}
	switch f.Code {
	case "BLD-001", "BLD-002", "BLD-004", "CFG-002", "CFG-003", "FS-006", "IPC-008", "ST-001":
		kept.Values = f.Values
	}
	p.past.raised = kept
	level := "ERROR"
	if row := f.Row(); row != nil && row.Severity == "warning" {
		level = "WARN"
	}
	p.note(level, "Orchestrator", "ErrorRaised", r, f.Code+" "+kept.Message())
}

// noteAnswer remembers the answer of a request; a nil fault is none.
func (p *Project) noteAnswer(r *Request, f *errcode.Fault) {
	code := ""
	if f != nil {
		code = f.Code
	}
	p.noteCode(r.ID, r.Command, code, p.Clock.Now())
}

// noteCode remembers when a request was answered, and with what; an empty code is none. It does not
// allocate once the rings are full.
func (p *Project) noteCode(id []byte, c codec.Command, code string, at time.Time) {
	a := p.past.requests.add(maxAnswered)
	*a = Answered{Command: c, Code: code}
	copy(a.RequestID.text[:], id)
	rec := p.past.debug.add(maxRecords)
	rec.At, rec.Level, rec.Component, rec.Event = at, "DEBUG", "Orchestrator", "Response"
	rec.RequestID, rec.words = a.RequestID, [len(rec.words)]string{c.String(), cmp.Or(code, "ok")}
	rec.current, rec.total = 0, 0
}

// snapshot returns what a bundle shows.
func (p *Project) snapshot() *Snapshot {
	return &Snapshot{State: p.state, Changed: p.past.changed, Requests: p.past.requests.all(), Logs: p.past.logs.all(), Debug: p.past.debug.all(), Raised: p.past.raised}
}

// maxExports bounds the bundles of a project that are written at once.
const maxExports = 64

// export begins an ExportDiagnostics (exacta §4.15). It runs beside everything else, and shows the
// project as it is now.
func (p *Project) export(r *Request) {
	if len(p.exports) == maxExports {
		p.turnAway(r, errcode.New("RES-004", "bundles: 64"))
		return
	}
	w := &Work{Request: r, Step: -1, Snapshot: p.snapshot()}
	p.exports = append(p.exports, w)
	p.Host.Run(w)
}

// dropExport forgets a bundle that was written.
func (p *Project) dropExport(w *Work) {
	p.exports = slices.DeleteFunc(p.exports, func(x *Work) bool { return x == w })
}

// exported ends an ExportDiagnostics.
func (p *Project) exported(w *Work) {
	if !slices.Contains(p.exports, w) {
		return // it was aborted, and answered then
	}
	p.dropExport(w)
	r := w.Request
	if err := w.Fault; err != nil {
		if w.cause != nil {
			err = w.cause
		}
		p.raise(r, r.flow, err)
		p.fail(r, err)
	} else {
		p.log(r, r.flow, "INFO", "FileGateway", "a bundle of diagnostics was written")
		p.done(r, append(codec.AppendText([]byte(`{"bundle_path":`), w.Bundle), '}'))
	}
	p.closeIdle()
}

// exportOf returns the export of a request, nil if none runs.
func (p *Project) exportOf(r *Request) *Work {
	i := slices.IndexFunc(p.exports, func(w *Work) bool { return w.Request == r })
	if i < 0 {
		return nil
	}
	return p.exports[i]
}
