package envelope

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"trunkline/codec/jsonx"
)

// DefaultStageOrder is the order of the documented agents (envelope §5.1, D12), comma separated.
const DefaultStageOrder = "perception,intent,plan,execution,critic,integration"

// Options are the settings of boundary A. Zero fields take the defaults.
type Options struct {
	// Now is the wall clock; nil: time.Now.
	Now func() time.Time
	// NewID makes the identifiers of envelopes that have none; nil: RandomID.
	NewID IDSource
	// StageOrder is default_stage_order (envelope §6); nil: DefaultStageOrder.
	StageOrder []string
}

// Engine answers the calls of boundary A. Each is a pure function of its input, the clock and the
// identifiers it has to invent. It is safe for concurrent use.
type Engine struct {
	opt   Options
	order [][]byte // StageOrder, which steps share
	works sync.Pool
}

// NewEngine returns an engine.
func NewEngine(o Options) *Engine {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = RandomID
	}
	if len(o.StageOrder) == 0 {
		o.StageOrder = strings.Split(DefaultStageOrder, ",")
	}
	x := &Engine{opt: o}
	for _, name := range o.StageOrder {
		x.order = append(x.order, []byte(name))
	}
	x.works.New = func() any { return new(step) }
	return x
}

// ErrorCode is the code of an error object (envelope §2.4).
type ErrorCode string

// The codes that the engine gives; its callers add those of their carrier.
const (
	ParseError      ErrorCode = "parse_error"
	InvalidEnvelope ErrorCode = "invalid_envelope"
)

// Error is a refusal of boundary A (envelope §2.4).
type Error struct {
	Code    ErrorCode
	Message string
	Field   string // the path, with InvalidEnvelope; empty if the whole input is meant
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Append appends the error object, compact.
func (e *Error) Append(dst []byte) []byte {
	field := ""
	if e.Code == InvalidEnvelope {
		field = fmt.Sprintf(`,"field":%s`, quote(e.Field))
	}
	return fmt.Appendf(dst, `{"error":true,"code":%s,"message":%s%s}`, quote(e.Code), quote(e.Message), field)
}

func invalid(p *Problem) *Error {
	return &Error{Code: InvalidEnvelope, Message: "Invalid envelope: " + p.Message(), Field: p.Field}
}

// open takes a workspace and reads src into it.
func (x *Engine) open(src []byte, read func(e *Env, src []byte) *Problem) (*step, *Error) {
	src = jsonx.TrimBOM(src)
	if p := jsonx.Check(src, jsonx.MaxDepth); !p.OK() {
		return nil, &Error{Code: ParseError, Message: "Invalid JSON: " + p.String()}
	}
	s := x.works.Get().(*step)
	if p := read(&s.e, src); p != nil {
		x.close(s)
		return nil, invalid(p)
	}
	s.begin(x)
	return s, nil
}

func (x *Engine) close(s *step) {
	s.release()
	x.works.Put(s)
}

func decodeEnvelope(e *Env, src []byte) *Problem { return e.Decode(JSON, src) }

// Process appends the envelope src one step further to dst (envelope §4.1): src with the effects of
// §5.1, compact, without a line end. ended is the bound that ended it (§4.2), NoReason otherwise.
// On an error dst is not changed.
func (x *Engine) Process(dst, src []byte) (out []byte, ended Reason, err *Error) {
	s, err := x.open(src, decodeEnvelope)
	if err != nil {
		return dst, NoReason, err
	}
	defer x.close(s)
	s.e.dropLeftovers()
	s.normalise()
	s.run()
	if s.goals.tooMany {
		return dst, NoReason, invalid(&Problem{Field: s.e.path(AllGoals), Text: tooManyElements})
	}
	s.goals.store(&s.e)
	if r := s.e.Reason(); r.bound() {
		ended = r
	}
	out = s.append(dst)
	if len(s.moved) > 0 {
		// What was moved lies deeper now.
		if p := jsonx.Check(out[len(dst):], jsonx.MaxDepth); !p.OK() {
			return dst, NoReason, invalid(&Problem{Field: s.e.path(Metadata), Text: "would nest too deep: " + p.String()})
		}
	}
	return out, ended, nil
}

// Create appends a complete flat envelope made of the members of src (envelope §4.4); no step is
// taken.
func (x *Engine) Create(dst, src []byte) (out []byte, err *Error) {
	s, err := x.open(src, (*Env).decodeMembers)
	if err != nil {
		return dst, err
	}
	defer x.close(s)
	s.e.dropLeftovers()
	s.normalise()
	s.goals.store(&s.e)
	return s.append(dst), nil
}

// append appends the envelope without the space that the input may have between its tokens
// (envelope §2.2).
func (s *step) append(dst []byte) []byte {
	start := len(dst)
	dst = s.e.Append(dst)
	return dst[:start+len(jsonx.Compact(dst[start:]))]
}
