package external

import (
	"errors"
	"slices"
	"strconv"

	"trunkline/codec/jsonx"
	"trunkline/engine/projects/diff"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
	"trunkline/engine/projects/planner"
	"trunkline/engine/projects/secret"
	"trunkline/handlers/exacta/workspace"
)

const (
	maxFiles      = 2000 // of the index that are named (exacta §4.20)
	bytesPerToken = 4    // of max_input_tokens
)

// extractInput returns the input of an extract_intent (exacta §4.20).
func extractInput(pr *Project, input string) []byte {
	b := pr.files(jsonx.Build(nil).Text("user_input", input)).Texts("markers", pr.Tree.Markers())
	if pr.Planner.Toolchain == "" {
		return b.Raw("toolchain", []byte("null")).End()
	}
	return b.Text("toolchain", pr.Planner.Toolchain).End()
}

// files appends the index: the first 2000 files.
func (pr *Project) files(b jsonx.Builder) jsonx.Builder {
	b = append(b.Name("files"), '[')
	all := pr.Tree.Files()
	for _, path := range all[:min(len(all), maxFiles)] {
		b = jsonx.Build(jsonx.AppendComma(b)).Text("path", path).Int("size", pr.Size(path)).End()
	}
	return append(b, ']')
}

// planInput returns the input of a generate_plan: RES-001 if the files of the intent are too large,
// SEC-003 if one has a secret. Files that a rule denies are left out of the intent too.
func planInput(pr *Project, in *planner.Intent, feedback []plan.Violation) ([]byte, *errcode.Fault) {
	b := jsonx.Build(jsonx.Build(nil).Name("intent")).Text("type", in.Type)
	b = strconv.AppendFloat(b.Name("confidence"), in.Confidence, 'f', -1, 64)
	b = b.Text("raw_input", in.RawInput)
	allowed := slices.DeleteFunc(slices.Clone(in.Files), func(path string) bool { return pr.Disk.Check(path) != nil })
	b = jsonx.Build(b.Name("target")).Texts("files", allowed).Texts("symbols", in.Symbols).Text("description", in.Description).End()
	b = append(b.Name("constraints"), '[')
	for i := range in.Constraints {
		c := &in.Constraints[i]
		b = jsonx.Build(jsonx.AppendComma(b)).Text("type", c.Type).Text("description", c.Description).Text("scope", c.Scope).End()
	}
	b = pr.files(append(append(b, ']'), '}'))
	b, f := pr.contexts(b, allowed)
	if f != nil {
		return nil, f
	}
	l := pr.Config
	b = jsonx.Build(b.Name("limits")).Int("max_steps_per_plan", int64(l.MaxSteps)).Int("max_total_files_per_plan", int64(l.MaxFiles)).
		Int("max_diff_lines_per_step", int64(l.MaxDiffLines)).End()
	return b.Raw("feedback", plan.AppendViolations(nil, feedback)).End(), nil
}

// contexts appends the content of files. Those that are missing, behind a link, or no text are left
// out.
func (pr *Project) contexts(b jsonx.Builder, files []string) (jsonx.Builder, *errcode.Fault) {
	b = append(b.Name("contexts"), '[')
	left := pr.Config.MaxInputTokens * bytesPerToken
	seen := make(map[string]bool)
	for _, path := range files {
		if seen[path] {
			continue
		}
		seen[path] = true
		content, err := pr.Tree.Read(path)
		if f := (*errcode.Fault)(nil); errors.As(err, &f) && f.Code == "RES-002" {
			left = -1 // larger than any budget
		}
		if err == nil && diff.Text(content) != nil || err != nil && left >= 0 {
			continue
		}
		if left -= len(content); left < 0 {
			return nil, errcode.New("RES-001", "contexts: more than "+strconv.Itoa(pr.Config.MaxInputTokens*bytesPerToken)+" bytes with "+path)
		}
		if secret.Find(content) {
			return nil, errcode.New("SEC-003", "contexts: in "+path)
		}
		b = jsonx.Build(jsonx.AppendComma(b)).Text("path", path).Text("sha256", workspace.Sum(content)).Bytes("content", content).End()
	}
	return append(b, ']'), nil
}
