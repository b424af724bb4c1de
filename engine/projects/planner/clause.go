package planner

import (
	"strings"

	"trunkline/engine/projects/plan"
)

// clause is a part of a request with one meaning. It has no stops and no commas.
type clause []token

// Lists of words (exacta §4.19).
const (
	filler = " please kindly can could would you i we want need to now also just and then the lets" +
		" let's us next finally first "
	verbs = " insert add put append write prepend replace change rename update fix correct swap" +
		" remove delete drop create new generate init initialize scaffold bootstrap build compile" +
		" package bundle publish release rebuild "
	polite = " but and please you then also "
	// triggersFirst are the first words of triggers.
	triggersFirst = " must mustn't do don't dont never without avoid no make always ensure only keep" +
		" if prefer preferably ideally should "
)

// trigger is what makes a clause a constraint.
type trigger struct {
	kind  string
	words []string
	stays bool // the words are part of the description
}

// triggers are tried in this order. They are not written.
var triggers = []trigger{
	{kind: plan.MustNot, words: []string{"must", "not"}},
	{kind: plan.MustNot, words: []string{"mustn't"}},
	{kind: plan.MustNot, words: []string{"do", "not"}},
	{kind: plan.MustNot, words: []string{"don't"}},
	{kind: plan.MustNot, words: []string{"dont"}},
	{kind: plan.MustNot, words: []string{"never"}},
	{kind: plan.MustNot, words: []string{"without"}},
	{kind: plan.MustNot, words: []string{"avoid"}},
	{kind: plan.MustNot, words: []string{"no"}},
	{kind: plan.Must, words: []string{"make", "sure"}},
	{kind: plan.Must, words: []string{"must"}},
	{kind: plan.Must, words: []string{"always"}},
	{kind: plan.Must, words: []string{"ensure"}},
	{kind: plan.Must, words: []string{"only"}, stays: true},
	{kind: plan.Must, words: []string{"keep"}, stays: true},
	{kind: plan.Prefer, words: []string{"if", "possible"}},
	{kind: plan.Prefer, words: []string{"prefer"}},
	{kind: plan.Prefer, words: []string{"preferably"}},
	{kind: plan.Prefer, words: []string{"ideally"}},
	{kind: plan.Prefer, words: []string{"should"}},
}

// split returns the clauses of a request.
func split(tokens []token) []clause {
	var out []clause
	var c clause
	end := func() {
		if len(c) > 0 {
			out = append(out, c)
		}
		c = nil
	}
	begins := beginnings(tokens)
	for i := range tokens {
		t := &tokens[i]
		switch {
		case t.kind == stop, t.is("then"), t.is("but"):
			end()
		case t.is("without"):
			end()
			c = append(c, *t)
		case (t.kind == comma || t.is("and")) && begins[i+1]:
			end()
		case t.kind == comma:
		default:
			c = append(c, *t)
		}
	}
	end()
	return out
}

// beginnings reports for every place whether the next word that is not filler begins an edit
// or a constraint.
func beginnings(tokens []token) []bool {
	out := make([]bool, len(tokens)+1)
	for i := len(tokens) - 1; i >= 0; i-- {
		t := &tokens[i]
		if t.in(filler) {
			out[i] = out[i+1]
		} else {
			out[i] = t.in(verbs) || t.in(triggersFirst)
		}
	}
	return out
}

// skip returns c without its leading words that are in a list.
func (c clause) skip(list string) clause {
	for len(c) > 0 && c[0].in(list) {
		c = c[1:]
	}
	return c
}

// constraint returns what the clause demands, forbids or prefers.
func (c clause) constraint() (k plan.Constraint, ok bool) {
	c = c.skip(polite)
	for i := range triggers {
		t := &triggers[i]
		if !c.startsWith(t.words) {
			continue
		}
		if rest := c[len(t.words):]; len(rest) > 0 {
			if !t.stays {
				c = rest
			}
			return plan.Constraint{Type: t.kind, Description: c.text(), Scope: rest.scope()}, true
		}
		return k, false
	}
	return k, false
}

func (c clause) startsWith(words []string) bool {
	if len(c) < len(words) {
		return false
	}
	for i, w := range words {
		if !c[i].is(w) {
			return false
		}
	}
	return true
}

// text returns the tokens as they were typed.
func (c clause) text() string {
	typed := make([]string, len(c))
	for i := range c {
		typed[i] = c[i].typed
	}
	return strings.Join(typed, " ")
}

// scope returns what the constraint is about: a path, else a name of code, else everything.
func (c clause) scope() string {
	name := plan.Global
	for i := range c {
		if c[i].kind == pathKind || c[i].kind == directory {
			return c[i].value
		}
		if name == plan.Global && c[i].isSymbol() {
			name = c[i].value
		}
	}
	return name
}

// find returns the first place at or behind i with a token of a kind, -1 if there is none.
func (c clause) find(i int, k kind) int {
	for ; i >= 0 && i < len(c); i++ {
		if c[i].kind == k {
			return i
		}
	}
	return -1
}

// findWord returns the first place at or behind i with a word of a list, -1 if there is none.
func (c clause) findWord(i int, list string) int {
	for ; i >= 0 && i < len(c); i++ {
		if c[i].in(list) {
			return i
		}
	}
	return -1
}
