package planner

import (
	"slices"
	"strings"
	"testing"
)

// show writes tokens as one letter for the kind and the value: "W:add P:a.txt |".
func show(tokens []token) string {
	var out []string
	for i := range tokens {
		t := &tokens[i]
		switch t.kind {
		case comma:
			out = append(out, ",")
		case stop:
			out = append(out, "|")
		case word:
			out = append(out, "W:"+t.low)
		default:
			out = append(out, string(" UPDSQ"[t.kind])+":"+t.value)
		}
	}
	return strings.Join(out, " ")
}

// TestTokens is spans and tokens of exacta §4.19.
func TestTokens(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		x := newLexer(demo().with("bin/tool", "x"))
		if got := show(x.tokens(in)); got != want {
			t.Errorf("%q:\n got %q\nwant %q", in, got, want)
		}
	}
	// Fences.
	f("```\na\nb\n```\nc", "Q:a\nb\n | W:c")
	f("```go\na", "Q:a\n")
	f("x with:\n```\na\n```", "W:x W:with Q:a\n")
	f("x with.\n\n```\na\n``` \nb", "W:x W:with | Q:a\n | W:b")
	f("```\r\na\r\n```\r\nb", "Q:a\n | W:b")
	f("```", "Q:")
	f("```\n", "Q:")
	f("```\n\n```", "Q:\n")
	// Double quotes.
	f(`a "b c" d`, "W:a Q:b c W:d")
	f(`"a\"b\\c\nd\te\qf"`, "Q:a\"b\\c\nd\te\\qf")
	f("5\" and\n6\"", `W:5" W:and | W:6"`)
	f(`a"b"c`, "W:a Q:b W:c")
	f(`"b".`, "Q:b |")
	f(`""`, "Q:")
	f(`"\" x`, `U:"\" W:x`)
	// Backticks, by their value.
	f("`../x` `a.txt` `src/` `userName` `a b`", "U:../x P:a.txt D:src S:userName Q:a b")
	f("`a\n`", "W:`a | W:`")
	// Marks.
	f("a, b; c", "W:a , W:b | W:c")
	f("don’t", "W:don't")
	f("run() stop(). (go())", "S:run S:stop | S:go")
	f("(a) [b] {c} <d> 'e' :f: !g", "W:a W:b W:c W:d W:e W:f W:g")
	f("a. b! c? d: e.) f", "W:a | W:b | W:c | W:d W:e | W:f")
	f("a\nb", "W:a | W:b")
	f("! x", "| W:x")
	// Kinds.
	f(`C:\a c:/a /a ~/a \\a a\b ../a a/../b .. a/..`,
		`U:C:\a U:c:/a U:/a U:~/a U:\\a U:a\b U:../a U:a/../b U:.. U:a/..`)
	f("/", "W:/")
	f("wait...", "W:wait |")
	f("main.go new.go x/y.py bin/tool tool e.g. 1.5", "P:main.go P:new.go P:x/y.py P:bin/tool W:tool W:e.g | W:1.5")
	f("Makefile sub/Dockerfile .gitignore .env LICENSE license", "P:Makefile P:sub/Dockerfile P:.gitignore P:.env P:LICENSE W:license")
	f("src/ src and/or x/ ./a.go a//b.go https://a.go", "D:src W:src W:and/or D:x W:./a.go W:a//b.go W:https://a.go")
	f("a.go/", "D:a.go")
	f("é.go", "W:é.go")
	for ext := range strings.FieldsSeq(extensions) {
		f("q."+ext, "P:q."+ext)
	}
	for name := range strings.FieldsSeq(plainNames) {
		f(name, "P:"+name)
	}
}

func TestCamel(t *testing.T) {
	f := func(list string, want bool) {
		t.Helper()
		for w := range strings.FieldsSeq(list) {
			if camel(w) != want {
				t.Errorf("camel(%s) is not %v", w, want)
			}
		}
	}
	f("UserService userName a1B A1B GitHub aB AbC", true)
	f("WPF User user userservice User_Name HTTPServer A AB 1aB User- aB- -", false)
}

// TestClauses is the ends of clauses and what is a constraint (exacta §4.19).
func TestClauses(t *testing.T) {
	f := func(in string, want ...string) {
		t.Helper()
		var got []string
		for _, c := range split(newLexer(demo()).tokens(in)) {
			if k, ok := c.constraint(); ok {
				got = append(got, k.Type+"("+k.Scope+"): "+k.Description)
			} else {
				got = append(got, c.text())
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", in, got, want)
		}
	}
	f("fix a then test b", "fix a", "test b")
	f("fix a but test b", "fix a", "test b")
	f("fix a without touching b.go", "fix a", "MUST_NOT(b.go): touching b.go")
	f("fix a, add b", "fix a", "add b")
	f("fix a, b and c", "fix a b and c")
	f("fix a and then please add b", "fix a", "please add b")
	f("fix a, and now delete b", "fix a", "now delete b")
	f("fix a and never b", "fix a", "MUST_NOT(global): b")
	f("fix a; b. c! d? e: f\ng", "fix a", "b", "c", "d", "e f", "g")
	f(";;,,.", []string(nil)...)
	// Triggers, in their order.
	f("must not a; mustn't b; do not c; don't d; dont e; never f; without g; avoid h; no i",
		"MUST_NOT(global): a", "MUST_NOT(global): b", "MUST_NOT(global): c", "MUST_NOT(global): d",
		"MUST_NOT(global): e", "MUST_NOT(global): f", "MUST_NOT(global): g", "MUST_NOT(global): h",
		"MUST_NOT(global): i")
	f("make sure a; must b; always c; ensure d; only e; keep f",
		"MUST(global): a", "MUST(global): b", "MUST(global): c", "MUST(global): d",
		"MUST(global): only e", "MUST(global): keep f")
	f("if possible a; prefer b; preferably c; ideally d; should e",
		"PREFER(global): a", "PREFER(global): b", "PREFER(global): c", "PREFER(global): d", "PREFER(global): e")
	f("And please you then also do not X", "please you", "MUST_NOT(global): X")
	f("you must not rename run() in src/ or a.txt", "MUST_NOT(src): rename run() in src/ or a.txt")
	f("do not rename run() or UserService", "MUST_NOT(run): rename run() or UserService")
	f("do not rename UserService or run()", "MUST_NOT(UserService): rename UserService or run()")
	f("never write \"a  b\" or `x y`", "MUST_NOT(global): write \"a  b\" or x y")
	f("Never. no", "Never", "no")
	f("make it; must", "make it", "must")
}

func TestContradiction(t *testing.T) {
	for in, bad := range map[string]bool{
		"never delete a.txt; always delete a.txt": true,
		"Never Touch  X. Must touch x.":           true,
		"never delete a.txt; prefer delete a.txt": false,
		"never delete a.txt; never delete a.txt":  false,
		"never delete a.txt; always delete b.txt": false,
	} {
		_, f := Extract(in, demo(), debug())
		if (f != nil) != bad || bad && f.Code != "VAL-002" {
			t.Errorf("%s: %v", in, f)
		}
	}
}
