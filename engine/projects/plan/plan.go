// Package plan is the documents of plans and the rules that a plan obeys (exacta §4.5): steps with
// their diffs and hashes, the file .exacta/plan/<id>.json, the statuses, and what is wrong with a
// plan. It is pure: what is true of the project now is passed in.
package plan

// Types of steps (exacta §3.4).
const (
	FileCreate = "file_create"
	FileModify = "file_modify"
	FileDelete = "file_delete"
	Build      = "build"
)

// Types of constraints (exacta §3.4), and the scope of one that is about everything.
const (
	Must    = "MUST"
	MustNot = "MUST_NOT"
	Prefer  = "PREFER"
	Global  = "global"
)

// Status is how far the approval of a plan is (exacta §5.4).
type Status string

// The statuses. Executed is one of storage only: a plan runs at most once.
const (
	Pending  Status = "pending"
	Approved Status = "approved"
	Rejected Status = "rejected"
	Expired  Status = "expired"
	Executed Status = "executed"
)

// Can reports whether a plan may go from s to next (exacta §5.4). An approval may be repeated.
func (s Status) Can(next Status) bool {
	switch s {
	case Pending:
		return next == Approved || next == Rejected || next == Expired
	case Approved:
		return next == Approved || next == Rejected || next == Expired || next == Executed
	}
	return false
}

// valid reports whether s is one of the statuses.
func (s Status) valid() bool {
	return s == Pending || s == Approved || s == Rejected || s == Expired || s == Executed
}

// Constraint is what a request demands, forbids or prefers (exacta §3.4).
type Constraint struct {
	Type        string
	Description string
	Scope       string // a path, a name of code, or Global
}

// Intent is what a plan keeps of its intent.
type Intent struct {
	ID          string
	Type        string
	Description string
}

// Step is one step of a plan (exacta §4.4). Its fields are facts: they do not change.
type Step struct {
	ID            string
	Order         int // from 1
	Type          string
	Target        string // "." for a build
	Description   string
	Configuration string   // of a build: Debug or Release
	Dependencies  []string // ids of earlier steps
	Diff          string   // of a file step (exacta §4.16)
	Pre, Post     string   // SHA-256 of the target before and after in hex; empty if absent
}

// IsFile reports whether the step changes a file.
func (s *Step) IsFile() bool { return s.Type != Build }

// Plan is a plan with the facts that were fixed when it was made (exacta §4.4). Only Status and
// ApprovedAt change.
type Plan struct {
	ID                string
	Version           int // from 1, of the plans for one intent
	Intent            Intent
	Steps             []Step
	Constraints       []Constraint
	ConfigFingerprint string
	CreatedAt         string
	EstimatedTokens   int

	Status     Status
	ApprovedAt string // empty before
}

// Estimate returns the tokens of a plan: a fourth of the bytes of its input and its diffs.
func Estimate(input string, steps []Step) int {
	n := len(input)
	for i := range steps {
		n += len(steps[i].Diff)
	}
	return (n + 3) / 4
}
