package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/codec/jsonx"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/diff"
	"trunkline/engine/projects/relpath"
	"trunkline/handlers/exacta/exactaclient"
)

func newExactaApplyCmd() *cobra.Command {
	return newOpenProjectCmd(&cobra.Command{
		Use:   "apply FILE...",
		Short: "Apply unified diffs, all or none, without a plan",
		Long: "Apply the diffs of files, as git diff, git show, git format-patch and diff -u write them, - for stdin: all or none. A renamed\n" +
			"file is deleted and created. The server must allow it, as it does over its unix socket by default. The rollback point that is\n" +
			"printed takes them back, see 'trunkline exacta rollback'.",
		Example: "  trunkline exacta apply fix.diff\n  git diff main topic | trunkline exacta apply -",
		Args:    cobra.MinimumNArgs(1),
	}, func(ctx context.Context, p *projectPeer, args []string) error {
		var set diffSet
		for _, name := range args {
			if err := set.read(p, name); err != nil {
				return err
			}
		}
		m, err := p.ask(ctx, "ApplyDiffSet", jsonx.Builder(codec.AppendTexts(p.payload().Name("diffs"), set.diffs)), nil)
		if err != nil {
			return set.explain(err)
		}
		done := "applied"
		if !m.Result.True("applied") {
			done = "nothing to apply"
		}
		return p.showResult(m, done+", rollback point "+m.Result.Text("rollback_point_id"))
	})
}

// diffSet is what an apply sends.
type diffSet struct {
	diffs  []string
	places []diffPlace // of each
}

// diffPlace is where a diff was read.
type diffPlace struct {
	file string
	line int // of its first line
}

// read adds the diffs of a file, - for stdin.
func (s *diffSet) read(p *projectPeer, name string) error {
	in := p.cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return cli.Errorf(cli.CodeUsage, "cannot read the diff: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxPayload+1))
	if err == nil && len(text) > maxPayload {
		err = fmt.Errorf("it is longer than %d bytes", maxPayload)
	}
	if err != nil {
		return cli.Errorf(cli.CodeUsage, "cannot read the diff %s: %w", name, err)
	}
	pieces, bad := diff.Split(string(text))
	if bad != nil {
		return refusedDiff(diffPlace{name, 1}, bad)
	}
	for _, piece := range pieces {
		texts, at := []string{piece.Text}, diffPlace{name, piece.Line}
		if piece.From != "" {
			if texts, err = moved(p.project.Root, at, &piece); err != nil {
				return err
			}
		}
		for _, text := range texts {
			s.diffs, s.places = append(s.diffs, text), append(s.places, at)
		}
	}
	return nil
}

// moved returns the diffs of a renamed or copied file, whose content is the one on this machine.
func moved(root string, at diffPlace, piece *diff.Piece) ([]string, error) {
	if relpath.NewRules(nil, nil, false).Denied(piece.From, false) { // the server does not get to know of a copy's source
		return nil, refusedDiff(at, &diff.Problem{Code: "SEC-002", Token: "denied", Text: piece.From})
	}
	old, err := readMoved(root, piece.From)
	if err != nil {
		return nil, cli.Errorf(exitWork, "%s:%d: cannot read the renamed file: %w", at.file, at.line, err)
	}
	patch, bad := diff.Parse(piece.Text)
	if bad == nil {
		bad = diff.Text(old)
	}
	changed := old
	if bad == nil {
		changed, bad = patch.Apply(old)
	}
	switch {
	case bad != nil:
		return nil, refusedDiff(at, bad)
	case piece.Copy:
		return []string{diff.Make(piece.To, nil, changed)}, nil
	}
	return []string{diff.Make(piece.From, old, nil), diff.Make(piece.To, nil, changed)}, nil
}

// readMoved reads a file that a diff can create elsewhere.
func readMoved(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Lstat(name)
	if err == nil && (!info.Mode().IsRegular() || info.Mode()&0o111 != 0 || info.Size() > diff.MaxBytes) {
		err = fmt.Errorf("%s is executable, has more than %d bytes or is no regular file: no diff creates such a file", name, diff.MaxBytes)
	}
	if err != nil {
		return nil, err
	}
	return root.ReadFile(name)
}

// diffRules are the rules of a diff for people (exacta §4.16), by their tokens.
var diffRules = map[string]string{
	"too_large":        "the diff of a file may have " + strconv.Itoa(diff.MaxBytes) + " bytes",
	"empty":            "there is no diff",
	"ansi":             "the diff has colours or other controls of a terminal: make it with --no-color",
	"fence":            "a line begins with three backticks: cut what is around the diff",
	"trailing_newline": "the last line does not end: a part of the diff is missing",
	"git_header":       "no file of the diff begins with --- and +++",
	"context_diff":     "this is a context diff: make a unified one, with diff -u",
	"quoted_path":      "the quoted path is not as git writes it",
	"rename":           "the two paths differ: git diff -M names a renamed file as such",
	"traversal":        "the path climbs out of the project",
	"hunk_line":        "a line of a hunk begins with a space, + or -; an empty line has lost its space",
	"denied":           "the file is denied: a rule of the project or of all projects protects it",
	"symlink":          "a part of the path is a symbolic link",
	"secret":           "the diff has a credential",
	"duplicate_target": "two diffs are of the same file",
	"target_exists":    "the file that the diff creates exists",
	"missing":          "the file that the diff changes does not exist",
	"context_lines":    "a change needs three unchanged lines around it: make the diff with -U3",
	"context":          "the file changed since the diff was made: it does not have these lines here",
	"nul":              "only text in UTF-8 can be changed",
	"binary":           "only text in UTF-8 can be changed",
	"encoding":         "only text in UTF-8 can be changed",
	"binary_diff":      "only text can be changed: leave binary files out",
	"header":           "a file begins with --- a/PATH and +++ b/PATH, one of them may be /dev/null",
	"absolute":         "the path is absolute or has a backslash",
	"path_form":        "the path is too long or has a control character, as the CR of a diff whose lines end with CR LF",
	"hunk_count":       "the hunk does not have as many lines as its header says",
	"not_regular":      "the target is no regular file",
	"combined":         "a combined diff of a merge or a conflict cannot be applied: make one against one parent",
	"submodule":        "a submodule cannot be changed: leave it out",
	"one_side":         "the diff does not have the content of a file that is on one side only: make it with -N",
	"mode":             "the mode of a file cannot be set: cut these lines, or write 100644 for a new file, and use chmod",
}

// explain names the place and the rule of a set that the server refused: its answer has them as
// "diffs[0] token: line 3".
func (s *diffSet) explain(err error) error {
	var e *exactaclient.Error
	if !errors.As(err, &e) {
		return err
	}
	if e.Code == "IPC-009" && len(s.diffs) > 1 {
		return explained(projectStatus(e), e, fmt.Sprintf("these are %d diffs; a set may have 50", len(s.diffs)))
	}
	i, bad := 0, &diff.Problem{Code: e.Code}
	if n, _ := fmt.Sscanf(e.Detail, "diffs[%d] %s", &i, &bad.Token); n != 2 || i >= len(s.places) {
		return err
	}
	_, bad.Text, _ = strings.Cut(e.Detail, bad.Token+" ")
	bad.Token = strings.TrimSuffix(bad.Token, ":")
	return refusedDiff(s.places[i], bad)
}

// refusedDiff explains a refusal in a sentence, with the line of the file that was read.
func refusedDiff(at diffPlace, bad *diff.Problem) error {
	detail := bad.Token + ": " + bad.Text
	if n, line := 0, at.line; strings.HasPrefix(bad.Text, "line ") {
		_, _ = fmt.Sscanf(bad.Text, "line %d", &n)
		at.line, detail = line+n-1, bad.Token
	}
	rule := diffRules[bad.Token]
	rule = cmp.Or(rule, "the diff is damaged here")
	e := &exactaclient.Error{Code: bad.Code, Message: fmt.Sprintf("%s:%d: %s", at.file, at.line, rule), Detail: detail}
	return explained(projectStatus(e), e, "")
}
