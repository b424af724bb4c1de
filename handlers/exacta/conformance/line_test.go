package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"trunkline/fuzz/kit/schemacheck"
)

// schemas are those that every message is compared with (exacta §3.8).
var schemas = sync.OnceValues(schemacheck.Load)

// sent is a line of a server.
type sent struct {
	Type, Event string
	Request     *string `json:"request_id"`
	Correlation string  `json:"correlation_id"`
	EventID     string  `json:"event_id"`
	SentAt      string  `json:"sent_at"`
	Project     string  `json:"project_id"`
	Seq         int
	Stream      int `json:"stream_seq"`
	OK          bool
	Payload     json.RawMessage
	Result      json.RawMessage
	Error       *failure

	line string
}

// failure is an error object.
type failure struct {
	Code, Category, Severity, Message string
	Detail                            string `json:"technical_detail"`
	Recovery                          string `json:"recovery_path"`
	Retryable                         bool
}

// body are the fields of payloads that short shows.
type body struct {
	From, To, Trigger string
	Phase             string
	Current, Total    int
	Order             int
	OK                bool
	Level, Message    string
	Plan              struct{ Version int }
	Error             failure
}

// short returns a line in a few words.
func (m *sent) short() string {
	if m.Type != "event" {
		if m.OK {
			return m.Type + " ok"
		}
		return m.Type + " " + m.Error.Code
	}
	var b body
	_ = json.Unmarshal(m.Payload, &b) // forms were checked
	switch m.Event {
	case "StateChanged":
		return b.From + "→" + b.To + " " + b.Trigger
	case "Progress":
		return fmt.Sprintf("%s %d/%d", b.Phase, b.Current, b.Total)
	case "PlanProposed":
		return "plan " + strconv.Itoa(b.Plan.Version)
	case "DiffProposed":
		return "diff"
	case "StepStarted":
		return "step " + strconv.Itoa(b.Order)
	case "StepCompleted":
		return "done " + strconv.FormatBool(b.OK)
	case "ErrorRaised":
		return "raised " + b.Error.Code
	}
	return b.Level + ": " + b.Message
}

const (
	oneID    = `"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"`
	newID    = `"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"`
	oneTime  = `"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`
	oneText  = `"(?:[^"\\]|\\.)*"`
	oneError = `\{"code":"[A-Z]+-\d{3}","category":"[A-Za-z]+","severity":"(?:fatal|error|warning)","message":` + oneText +
		`,"technical_detail":` + oneText + `,"recovery_path":"[A-Z][a-z]+","retryable":(?:true|false)\}`
	outcome = `"ok":(?:true,"result":\{.*\},"error":null|false,"result":null,"error":` + oneError + `)\}`
)

// forms are the messages of exacta §3.3 to §3.5 with their keys in order.
var forms = regexp.MustCompile(`^\{"ipc_version":"1\.0","type":(?:` +
	`"response","request_id":(?:null|` + oneID + `),"correlation_id":` + newID + `,"sent_at":` + oneTime + `,` + outcome + `|` +
	`"ack","request_id":(?:null|` + oneID + `),"sent_at":` + oneTime + `,` + outcome + `|` +
	`"event","event":"[A-Za-z]+","event_id":` + newID + `,"sent_at":` + oneTime + `,"request_id":(?:null|` + oneID + `),"correlation_id":` + newID +
	`,"seq":\d+,"project_id":` + newID + `,"stream_seq":\d+,"payload":\{.*\}\})$`)

// payloads are those of events with their keys in order (exacta §3.4).
var payloads = map[string]*regexp.Regexp{
	"StateChanged":  regexp.MustCompile(`^\{"from":"[A-Za-z]+","to":"[A-Za-z]+","trigger":"[A-Za-z]+"\}$`),
	"PlanProposed":  regexp.MustCompile(`^\{"plan":\{"id":` + newID + `,"version":\d+,"status":"pending","estimated_tokens":\d+,"constraints":\[(?:` + oneConstraint + `,?)*\],"steps":\[(?:` + oneStep + `,?)+\]\}\}$`),
	"DiffProposed":  regexp.MustCompile(`^\{"step_id":` + newID + `,"diff":` + oneText + `\}$`),
	"StepStarted":   regexp.MustCompile(`^\{"step_id":` + newID + `,"order":[1-9]\d*,"description":` + oneText + `\}$`),
	"StepCompleted": regexp.MustCompile(`^\{"step_id":` + newID + `,"ok":(?:true|false),"duration_ms":\d+\}$`),
	"Progress":      regexp.MustCompile(`^\{"phase":"(?:planning|diff|apply|build|preview)","current":\d+,"total":\d+\}$`),
	"LogEntry": regexp.MustCompile(`^\{"level":"(?:ERROR|WARN|INFO|DEBUG|TRACE)","component":"(?:Orchestrator|DiffParser|FileGateway|BuildExecutor|AIInterface)","message":` + oneText +
		`,"correlation_id":` + newID + `\}$`),
	"ErrorRaised": regexp.MustCompile(`^\{"error":` + oneError + `\}$`),
}

const (
	oneConstraint = `\{"type":"(?:MUST|MUST_NOT|PREFER)","description":` + oneText + `,"scope":` + oneText + `\}`
	oneStep       = `\{"id":` + newID + `,"order":\d+,"type":"(?:file_create|file_modify|file_delete|build)","target":` + oneText + `,"description":` + oneText + `,"dependencies":\[[^\]]*\]\}`
)

// escapes are the only ones of output (exacta §3.1).
var escapes = regexp.MustCompile(`\\(?:["\\ntrbf]|u00(?:0[0-7be-f]|1[0-9a-f])|u202[89])`)

// checker checks what holds for every line of a connection.
type checker struct {
	t       testing.TB
	valid   *schemacheck.Validator
	seqs    map[string]int // of correlations
	streams map[string]int // of projects
	joined  bool           // events may begin in the middle of a correlation, and come again
	partial bool           // not all events come
}

// parse checks the form of a line and reads it.
func (c *checker) parse(line string) *sent {
	c.t.Helper()
	if err := c.valid.Sent([]byte(line)); err != nil {
		c.t.Fatal(err)
	}
	if !forms.MatchString(line) {
		c.t.Fatalf("the keys are not in their order: %s", line)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(line)); err != nil || compact.String() != line || strings.Contains(line, "\r") {
		c.t.Fatalf("not compact: %v %s", err, line)
	}
	if rest := escapes.ReplaceAllString(line, ""); strings.Contains(rest, `\`) || strings.ContainsAny(rest, "\u2028\u2029") {
		c.t.Fatalf("escapes: %s", line)
	}
	m := &sent{line: line}
	if err := json.Unmarshal([]byte(line), m); err != nil {
		c.t.Fatal(err)
	}
	if m.Error != nil {
		c.failure(m.Error, line)
	}
	if m.Type == "event" {
		c.event(m)
	}
	return m
}

// event checks the payload and the counters of an event.
func (c *checker) event(m *sent) {
	c.t.Helper()
	if form := payloads[m.Event]; form == nil || !form.Match(m.Payload) {
		c.t.Fatalf("the payload: %s", m.line)
	}
	if m.Event == "ErrorRaised" {
		var b body
		_ = json.Unmarshal(m.Payload, &b) // its form was checked
		c.failure(&b.Error, m.line)
	}
	if last, again := c.seqs[m.Correlation]; !c.partial && m.Seq != last+1 && !(c.joined && (!again || m.Seq <= last)) {
		c.t.Fatalf("a gap in seq behind %d: %s", last, m.line)
	}
	if last, again := c.streams[m.Project]; !c.partial && again && m.Stream != last+1 && !(c.joined && m.Stream <= last) {
		c.t.Fatalf("a gap in stream_seq behind %d: %s", last, m.line)
	}
	c.seqs[m.Correlation] = max(c.seqs[m.Correlation], m.Seq)
	c.streams[m.Project] = max(c.streams[m.Project], m.Stream)
}

// failure checks an error object against its row.
func (c *checker) failure(f *failure, line string) {
	c.t.Helper()
	row, ok := registry[f.Code]
	if !ok || f.Category != row.category || f.Severity != row.severity || f.Recovery != row.recovery || f.Retryable != row.retryable ||
		!row.message.MatchString(f.Message) || len(f.Detail) > 4096 || strings.Contains(f.Detail, "goroutine ") {
		c.t.Fatalf("the error object: %s", line)
	}
}

// matches reports whether got is want, where … is any text. No want is any text too.
func matches(want, got string) bool {
	if want == "" {
		return true
	}
	parts := strings.Split(want, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^(?s:" + strings.Join(parts, ".*") + ")$").MatchString(got)
}
