package plan

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

// sample is a plan with everything a document can have.
func sample() *Plan {
	return &Plan{
		ID: "p-1", Version: 2, Intent: Intent{ID: "i-1", Type: "FixBug", Description: "fix \"é\" <b>\n"},
		Steps: []Step{
			{
				ID: "s-1", Order: 1, Type: FileModify, Target: "a.txt", Description: "Modify a.txt: append text",
				Diff: "--- a/a.txt\n+++ b/a.txt\n", Pre: "00", Post: "01",
			},
			{ID: "s-2", Order: 2, Type: FileCreate, Target: "b.txt", Description: "Create b.txt", Post: "02"},
			{ID: "s-3", Order: 3, Type: FileDelete, Target: "c.txt", Description: "Delete c.txt", Pre: "03"},
			{
				ID: "s-4", Order: 4, Type: Build, Target: ".", Description: "Build (Debug)", Configuration: "Debug",
				Dependencies: []string{"s-1", "s-3"},
			},
		},
		Constraints:       []Constraint{{MustNot, "touch d.txt", "d.txt"}, {Prefer, "x", Global}},
		ConfigFingerprint: "cf", CreatedAt: "2026-01-15T00:00:00.000Z", EstimatedTokens: 25,
		Status: Approved, ApprovedAt: "2026-01-15T00:00:01.000Z",
	}
}

func TestDocument(t *testing.T) {
	for _, p := range []*Plan{sample(), {ID: "x", Status: Pending}} {
		doc := p.Append([]byte("  "))
		got, err := Parse(doc)
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", doc, err, got, p)
		}
	}
	least := &Plan{ID: "x", Version: 1, Status: Pending}
	least.Steps = []Step{{ID: "s", Order: 1, Type: Build, Target: "."}}
	doc := string(least.Append(nil))
	want := `{"schema_version":1,"status":"pending","approved_at":null,"fingerprint":"` +
		digest([]byte(doc[strings.Index(doc, `"facts":`)+8:len(doc)-1])) +
		`","facts":{"config_fingerprint":"","constraints":[],"created_at":"","estimated_tokens":0,"id":"x",` +
		`"intent":{"description":"","id":"","type":""},"steps":[{"configuration":null,"dependencies":[],` +
		`"description":"","diff":"","id":"s","order":1,"post_sha256":null,"pre_sha256":null,"target":".",` +
		`"type":"build"}],"version":1}}`
	if doc != want {
		t.Errorf("\n got %s\nwant %s", doc, want)
	}
}

// TestFingerprint is that it covers every fact, and neither the status nor the approval.
func TestFingerprint(t *testing.T) {
	base := sample().fingerprint()
	f := func(want bool, change func(*Plan)) {
		t.Helper()
		p := sample()
		change(p)
		if (p.fingerprint() != base) != want {
			t.Errorf("changed: not %v", want)
		}
	}
	f(false, func(p *Plan) { p.Status = Expired })
	f(false, func(p *Plan) { p.ApprovedAt = "" })
	f(true, func(p *Plan) { p.ID = "x" })
	f(true, func(p *Plan) { p.Version++ })
	f(true, func(p *Plan) { p.Intent.ID = "x" })
	f(true, func(p *Plan) { p.Intent.Type = "x" })
	f(true, func(p *Plan) { p.Intent.Description = "x" })
	f(true, func(p *Plan) { p.Constraints[0].Scope = "x" })
	f(true, func(p *Plan) { p.Constraints[0].Type = Must })
	f(true, func(p *Plan) { p.Constraints[1].Description = "y" })
	f(true, func(p *Plan) { p.ConfigFingerprint = "x" })
	f(true, func(p *Plan) { p.CreatedAt = "x" })
	f(true, func(p *Plan) { p.EstimatedTokens++ })
	f(true, func(p *Plan) { p.Steps = p.Steps[:3] })
	step := reflect.TypeFor[Step]()
	for i := range step.NumField() {
		f(true, func(p *Plan) {
			switch v := reflect.ValueOf(&p.Steps[1]).Elem().Field(i); v.Kind() {
			case reflect.String:
				v.SetString("other")
			case reflect.Int:
				v.SetInt(9)
			default:
				v.Set(reflect.ValueOf([]string{"other"}))
			}
		})
	}
}

// TestDamagedDocuments is that no other text is a plan.
func TestDamagedDocuments(t *testing.T) {
	doc := sample().Append(nil)
	f := func(from, to string) {
		t.Helper()
		bad := bytes.Replace(doc, []byte(from), []byte(to), 1)
		if bytes.Equal(bad, doc) {
			t.Fatalf("%s does not occur", from)
		}
		if _, err := Parse(bad); err == nil {
			t.Errorf("%s is %s: accepted", from, to)
		}
	}
	f(`"schema_version":1`, `"schema_version":2`)
	f(`"schema_version":1`, `"schema_version":"1"`)
	f(`"schema_version":1,`, ``)
	f(`"status":"approved"`, `"status":"done"`)
	f(`"status":"approved"`, `"status":"approved","status":"approved"`)
	f(`"approved_at":"`, `"Approved_at":"`)
	f(`"fingerprint":"`, `"fingerprint":"0`)
	f(`"facts":{`, `"facts":[{`)
	f(`"order":1`, `"order":5`)
	f(`"order":1`, `"order":1.5`)
	f(`"order":1`, `"order":true`)
	f(`"order":1,`, ``)
	f(`"target":"a.txt"`, `"target":"z.txt"`)
	f(`"target":"a.txt"`, `"target":null`)
	f(`"dependencies":["s-1","s-3"]`, `"dependencies":["s-1",3]`)
	f(`"dependencies":["s-1","s-3"]`, `"dependencies":null`)
	f(`"constraints":[{`, `"constraints":[[],{`)
	f(`"constraints":[`, `"constraints":null,"c":[`)
	f(`"intent":{`, `"intent":null,"i":{`)
	f(`"steps":[{`, `"steps":["x",{`)
	f(`"pre_sha256":"00"`, `"pre_sha256":0`)
	f(`"version":2`, `"version":99999999999999999999`)
	for i := range doc {
		if _, err := Parse(doc[:i]); err == nil {
			t.Errorf("the first %d bytes: accepted", i)
		}
	}
	for _, s := range []string{"", "null", "[]", "1", `"x"`, "{}", string(doc) + "x", strings.Repeat("[", 1000)} {
		if _, err := Parse([]byte(s)); err == nil {
			t.Errorf("%.20s: accepted", s)
		}
	}
}

// TestStatus is every pair of statuses (exacta §5.4).
func TestStatus(t *testing.T) {
	all := []Status{Pending, Approved, Rejected, Expired, Executed, "other"}
	can := map[Status]string{Pending: "approved rejected expired", Approved: "approved rejected expired executed"}
	for _, from := range all {
		for _, to := range all {
			if want := listed(" "+can[from]+" ", string(to)); from.Can(to) != want {
				t.Errorf("%s → %s is not %v", from, to, want)
			}
		}
	}
}

// TestEstimate is E3 (exacta §9) and the rounding.
func TestEstimate(t *testing.T) {
	f := func(input, diff, want int) {
		t.Helper()
		steps := []Step{{Diff: strings.Repeat("x", diff)}, {}}
		if got := Estimate(strings.Repeat("x", input), steps); got != want {
			t.Errorf("%d + %d: %d, want %d", input, diff, got, want)
		}
	}
	f(26, 72, 25)
	f(0, 0, 0)
	f(1, 0, 1)
	f(2, 2, 1)
	f(2, 3, 2)
}

func FuzzParse(f *testing.F) {
	f.Add(sample().Append(nil))
	f.Add([]byte(`{"schema_version":1,"status":"pending","approved_at":null,"fingerprint":"","facts":{}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		p, err := Parse(doc)
		if err != nil {
			return
		}
		again, err := Parse(p.Append(nil))
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Errorf("%s: %v, then %v, %v", doc, p, again, err)
		}
	})
}
