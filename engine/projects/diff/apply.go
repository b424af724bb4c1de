package diff

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// contextLines is how many unchanged lines surround a change, unless the file ends there
// (exacta §4.16 rule 7).
const contextLines = 3

// sniffed is how many bytes of a file are searched for NUL (exacta §4.16 rule 7).
const sniffed = 8192

// Apply returns the content of the file after the patch; old is not changed. nil stands for a
// file that does not exist, before and after: an empty file must not be nil. None returns old.
// Content is tested by rule 7 of exacta §4.16, in its order.
func (p *Patch) Apply(old []byte) ([]byte, *Problem) {
	if p.Op == None {
		return old, nil
	}
	if bad := p.checkTree(old); bad != nil {
		return nil, bad
	}
	if bad := Text(old); bad != nil {
		return nil, &Problem{bad.Code, bad.Token, p.Path}
	}
	total := countLines(old)
	if p.Op == Modify {
		if bad := p.checkContext(total); bad != nil {
			return nil, bad
		}
	}
	if p.Op == Delete && p.covered() != total {
		return nil, p.conflict(p.covered() + 1)
	}
	out, bad := p.run(old)
	if bad != nil || p.Op == Delete {
		return nil, bad
	}
	return out, nil
}

// checkTree tests whether the file exists as the operation demands.
func (p *Patch) checkTree(old []byte) *Problem {
	switch {
	case p.Op == Create && old != nil:
		return &Problem{drifted, "target_exists", p.Path}
	case p.Op != Create && old == nil:
		return &Problem{absent, "missing", p.Path}
	}
	return nil
}

// Text tests whether content is text that a diff may edit: UTF-8 without NUL in its first 8 KiB
// (exacta §4.16 rule 7, PV-11 of §4.5). It allocates only a refusal, whose Text is empty.
func Text(content []byte) *Problem {
	switch {
	case bytes.IndexByte(content[:min(len(content), sniffed)], 0) >= 0:
		return &Problem{Code: invalid, Token: "binary"}
	case !utf8.Valid(content):
		return &Problem{Code: invalid, Token: "encoding"}
	}
	return nil
}

// countLines returns the number of lines. The last one may lack its newline.
func countLines(content []byte) int64 {
	n := bytes.Count(content, []byte{'\n'})
	if len(content) > 0 && content[len(content)-1] != '\n' {
		n++
	}
	return int64(n)
}

// checkContext tests that enough unchanged lines surround the changes of each hunk in a file of
// total lines.
func (p *Patch) checkContext(total int64) *Problem {
	for i := range p.hunks {
		h := &p.hunks[i]
		f := &h.fragment
		start, end := h.oldStart(), h.oldStart()+f.OldLines
		if f.LeadingContext < contextLines && start > 0 || f.TrailingContext < contextLines && end < total {
			return atLine("context_lines", h.line)
		}
	}
	return nil
}

// covered returns how many lines a patch deletes.
func (p *Patch) covered() (n int64) {
	for i := range p.hunks {
		n += p.hunks[i].fragment.OldLines
	}
	return n
}

// run applies the hunks by go-gitdiff, which accepts them at their line numbers only.
func (p *Patch) run(old []byte) ([]byte, *Problem) {
	out := bytes.NewBuffer(make([]byte, 0, len(old)+p.growth()))
	applier := gitdiff.NewTextApplier(out, bytes.NewReader(old))
	for i := range p.hunks {
		if err := applier.ApplyFragment(&p.hunks[i].fragment); err != nil {
			line := p.hunks[i].oldStart() + 1
			if at := (*gitdiff.ApplyError)(nil); errors.As(err, &at) && at.Line > 0 {
				line = at.Line
			}
			return nil, p.conflict(line)
		}
	}
	if err := applier.Close(); err != nil {
		return nil, p.conflict(1)
	}
	return out.Bytes(), nil
}

// growth returns how many bytes the patch adds.
func (p *Patch) growth() (n int) {
	for i := range p.hunks {
		for _, l := range p.hunks[i].fragment.Lines {
			if l.Op == gitdiff.OpAdd {
				n += len(l.Line)
			}
		}
	}
	return n
}

// conflict returns the problem of a line of the file, counted from 1.
func (p *Patch) conflict(line int64) *Problem {
	return &Problem{drifted, "context", p.Path + ":" + strconv.FormatInt(line, 10)}
}
