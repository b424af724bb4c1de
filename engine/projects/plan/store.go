package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"

	"trunkline/codec/jsonx"
)

// maxDepth is how deep a plan document nests.
const maxDepth = 8

var (
	errInvalid = errors.New("cannot read plan: not a plan document")
	errChanged = errors.New("cannot read plan: its fingerprint is not that of its facts")
)

// Append appends the document of the plan, plan/<id>.json (exacta §4.18), to dst.
//
//	{"schema_version":1,"status":…,"approved_at":…,"fingerprint":…,"facts":{…}}
func (p *Plan) Append(dst []byte) []byte {
	facts := p.appendFacts(nil)
	b := jsonx.Build(dst).Int("schema_version", 1).Text("status", string(p.Status))
	b = texted(b, "approved_at", p.ApprovedAt)
	return b.Text("fingerprint", digest(facts)).Raw("facts", facts).End()
}

// fingerprint returns the SHA-256 in hex of the canonical JSON of the facts (exacta §4.4).
func (p *Plan) fingerprint() string { return digest(p.appendFacts(nil)) }

// digest returns the SHA-256 of bytes in hex.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// texted appends a member that is null if it is empty.
func texted(b jsonx.Builder, name, value string) jsonx.Builder {
	if value == "" {
		return b.Raw(name, []byte("null"))
	}
	return b.Text(name, value)
}

// appendFacts appends canonical JSON: keys in the order of their bytes, no space.
func (p *Plan) appendFacts(dst []byte) []byte {
	b := jsonx.Build(dst).Text("config_fingerprint", p.ConfigFingerprint)
	b = append(b.Name("constraints"), '[')
	for i := range p.Constraints {
		c := &p.Constraints[i]
		b = jsonx.Build(jsonx.AppendComma(b)).Text("description", c.Description).
			Text("scope", c.Scope).Text("type", c.Type).End()
	}
	b = append(b, ']')
	b = b.Text("created_at", p.CreatedAt).Int("estimated_tokens", int64(p.EstimatedTokens))
	b = b.Text("id", p.ID)
	b = jsonx.Build(b.Name("intent")).Text("description", p.Intent.Description).
		Text("id", p.Intent.ID).Text("type", p.Intent.Type).End()
	b = append(b.Name("steps"), '[')
	for i := range p.Steps {
		b = p.Steps[i].appendFacts(jsonx.AppendComma(b))
	}
	return append(b, ']').Int("version", int64(p.Version)).End()
}

func (s *Step) appendFacts(dst []byte) []byte {
	b := texted(jsonx.Build(dst), "configuration", s.Configuration)
	b = b.Texts("dependencies", s.Dependencies).Text("description", s.Description)
	b = b.Text("diff", s.Diff).Text("id", s.ID).Int("order", int64(s.Order))
	b = texted(texted(b, "post_sha256", s.Post), "pre_sha256", s.Pre)
	return b.Text("target", s.Target).Text("type", s.Type).End()
}

// Parse reads a document of Append. It takes no other: members that are missing, of another type
// or repeated, and facts that do not have the fingerprint, are errors.
func Parse(doc []byte) (*Plan, error) {
	var strict jsonx.Strict
	if problem := strict.Check(doc, maxDepth); !problem.OK() {
		return nil, errInvalid
	}
	var r reader
	top := r.pick(jsonx.ValueOf(doc), "schema_version", "status", "approved_at", "fingerprint", "facts")
	if r.bad || r.number(top[0]) != 1 {
		return nil, errInvalid
	}
	p := &Plan{Status: Status(r.text(top[1])), ApprovedAt: r.optional(top[2])}
	fingerprint := r.text(top[3])
	r.facts(p, top[4])
	if r.bad || !p.Status.valid() {
		return nil, errInvalid
	}
	if fingerprint != p.fingerprint() {
		return nil, errChanged
	}
	return p, nil
}

// reader reads members and notes if one is not as it must be.
type reader struct{ bad bool }

// pick returns the members of an object, all of which must be there.
func (r *reader) pick(v jsonx.Value, names ...string) []jsonx.Value {
	out := make([]jsonx.Value, len(names))
	if v.Kind != jsonx.ObjectStart {
		r.bad = true
		return out
	}
	jsonx.Pick(v.Raw, names, out)
	for i := range out {
		r.bad = r.bad || out[i].Kind == jsonx.Absent
	}
	return out
}

func (r *reader) text(v jsonx.Value) string {
	s, ok := v.Text()
	r.bad = r.bad || !ok
	return string(s)
}

// optional reads a string or null.
func (r *reader) optional(v jsonx.Value) string {
	if v.Kind == jsonx.Null {
		return ""
	}
	return r.text(v)
}

func (r *reader) number(v jsonx.Value) int {
	n, err := strconv.Atoi(string(v.Raw))
	r.bad = r.bad || v.Kind != jsonx.Number || err != nil
	return n
}

// each calls do with the elements of an array.
func (r *reader) each(v jsonx.Value, do func(jsonx.Value)) {
	r.bad = r.bad || v.Kind != jsonx.ArrayStart
	a := jsonx.OpenArray(v.Raw)
	for e, ok := a.Next(); ok && !r.bad; e, ok = a.Next() {
		do(e)
	}
}

func (r *reader) facts(p *Plan, v jsonx.Value) {
	m := r.pick(v, "config_fingerprint", "constraints", "created_at", "estimated_tokens", "id", "intent",
		"steps", "version")
	if r.bad {
		return
	}
	p.ConfigFingerprint = r.text(m[0])
	r.each(m[1], func(e jsonx.Value) {
		c := r.pick(e, "type", "description", "scope")
		p.Constraints = append(p.Constraints,
			Constraint{Type: r.text(c[0]), Description: r.text(c[1]), Scope: r.text(c[2])})
	})
	p.CreatedAt, p.EstimatedTokens, p.ID = r.text(m[2]), r.number(m[3]), r.text(m[4])
	in := r.pick(m[5], "id", "type", "description")
	p.Intent = Intent{ID: r.text(in[0]), Type: r.text(in[1]), Description: r.text(in[2])}
	r.each(m[6], func(e jsonx.Value) { p.Steps = append(p.Steps, r.step(e)) })
	p.Version = r.number(m[7])
}

func (r *reader) step(v jsonx.Value) Step {
	m := r.pick(v, "configuration", "dependencies", "description", "diff", "id", "order", "post_sha256",
		"pre_sha256", "target", "type")
	s := Step{
		Configuration: r.optional(m[0]), Description: r.text(m[2]), Diff: r.text(m[3]), ID: r.text(m[4]),
		Order: r.number(m[5]), Post: r.optional(m[6]), Pre: r.optional(m[7]), Target: r.text(m[8]),
		Type: r.text(m[9]),
	}
	list, ok := m[1].Texts()
	r.bad = r.bad || !ok
	if len(list) > 0 {
		s.Dependencies = list
	}
	return s
}
