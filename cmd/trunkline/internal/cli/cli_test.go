package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestExit(t *testing.T) {
	f := func(err error, want int) {
		t.Helper()
		if got := Exit(err); got != want {
			t.Errorf("Exit(%v) = %d, want %d", err, got, want)
		}
	}
	f(nil, 0)
	f(errors.New("x"), 1)
	f(&Error{Err: errors.New("x")}, 1)
	f(Errorf(CodeNotFound, "x"), 3)
	f(fmt.Errorf("outer: %w", Errorf(CodeConflict, "x")), 6)
	f(fmt.Errorf("outer: %w", context.DeadlineExceeded), 5)
	f(Errorf(CodeFailed, "outer: %w", context.DeadlineExceeded), 1)
	f(context.Canceled, 1)
}

func TestAsUsage(t *testing.T) {
	if AsUsage(nil, "h") != nil {
		t.Error("nil became an error")
	}
	if got := Exit(AsUsage(errors.New("x"), "h")); got != CodeUsage {
		t.Errorf("a plain error became %d", got)
	}
	if got := Exit(AsUsage(Errorf(CodeNotFound, "x"), "h")); got != CodeNotFound {
		t.Errorf("a code was replaced by %d", got)
	}
}

func TestRender(t *testing.T) {
	f := func(err error, asJSON bool, want string) {
		t.Helper()
		var b bytes.Buffer
		Render(&b, err, asJSON)
		if b.String() != want {
			t.Errorf("Render(%v, %v) = %q, want %q", err, asJSON, b.String(), want)
		}
	}
	f(nil, false, "")
	f(nil, true, "")
	f(errors.New("cannot x: 1"), false, "trunkline: cannot x: 1\n")
	f(Errorf(3, "cannot x").WithHint("a\nb"), false, "trunkline: cannot x\nhint: a\nhint: b\n")
	f(errors.New("x"), true, `{"error":"x","code":1,"hint":""}`+"\n")
	f(fmt.Errorf("o: %w", Errorf(5, "x").WithHint("h")), true, `{"error":"o: x","code":5,"hint":"h"}`+"\n")
	f(&Error{Code: 1, Err: errors.New("x"), Hint: "h", Usage: "Usage:\n  y\n"}, false, "trunkline: x\nhint: h\nUsage:\n  y\n")
	f(&Error{Code: 1, Err: errors.New("x"), Usage: "Usage:\n"}, true, `{"error":"x","code":1,"hint":""}`+"\n")
	f(&Error{Code: 4}, false, "")
	f(&Error{Code: 4}, true, "")
	full := &Error{Code: 1, Err: errors.New("FULL: x"), ServerCode: "FULL", Retryable: true, RetryAfterSeconds: 2.5}
	f(full, false, "trunkline: FULL: x\n")
	f(fmt.Errorf("o: %w", full), true, `{"error":"o: FULL: x","code":1,"hint":"","server_code":"FULL","retryable":true,"retry_after_seconds":2.5}`+"\n")
}

func TestJSONFlagReachesChildren(t *testing.T) {
	f := func(want bool, args ...string) {
		t.Helper()
		got := false
		root := &cobra.Command{Use: "r"}
		root.PersistentFlags().Bool(FlagJSON, false, "")
		root.AddCommand(&cobra.Command{Use: "c", RunE: func(cmd *cobra.Command, _ []string) error {
			got = JSON(cmd)
			return nil
		}})
		root.SetArgs(args)
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%v: %v, want %v", args, got, want)
		}
	}
	f(false, "c")
	f(true, "c", "--json")
	f(true, "--json", "c")
	f(false, "c", "--json=false")
	if JSON(&cobra.Command{}) {
		t.Error("a command without the flag wants JSON")
	}
}

func TestWantsJSON(t *testing.T) {
	f := func(want bool, args ...string) {
		t.Helper()
		if got := WantsJSON(args); got != want {
			t.Errorf("WantsJSON(%q) = %v", args, got)
		}
	}
	f(false)
	f(true, "x", "--json")
	f(true, "--json=true")
	f(false, "x", "--", "--json")
	f(false, "--jsonx")
}

func TestTableAndJSON(t *testing.T) {
	var b bytes.Buffer
	if err := writeTable(&b, [][]string{{"A", "B"}, {"long", "1"}, {"x"}}); err != nil {
		t.Fatal(err)
	}
	if want := "A     B\nlong  1\nx\n"; b.String() != want {
		t.Errorf("table = %q, want %q", b.String(), want)
	}
	b.Reset()
	if err := WriteJSON(&b, map[string]string{"a": "<b>"}); err != nil {
		t.Fatal(err)
	}
	if want := "{\n  \"a\": \"<b>\"\n}\n"; b.String() != want {
		t.Errorf("JSON = %q, want %q", b.String(), want)
	}
	if err := WriteJSON(&b, func() {}); err == nil {
		t.Error("a function became JSON")
	}
}

// TestVisible: what a terminal obeys, what turns text around and what is no UTF-8 is an escape.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain\tü 😀": "plain\tü 😀", "\x1b]0;t\x07": `\x1b]0;t\a`, "\u009b2J": `\u009b2J`, "a\u202eb\u2066c\u200b": `a\u202eb\u2066c\u200b`, "\x9b2J \xff": `\x9b2J \xff`,
		"a\rb\nc": `a\rb\nc`, "\U000e0001": `\U000e0001`,
	} {
		if got := Visible(text); got != want || Visible(got) != got {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if got := VisibleLines("a\x07\nb\x1b"); got != "a\\a\nb\\x1b" {
		t.Errorf("%q", got)
	}
	var out strings.Builder
	if err := writeTable(&out, [][]string{{"a\x1b[2J", "b"}}); err != nil || out.String() != "a\\x1b[2J  b\n" {
		t.Errorf("%q %v", out.String(), err)
	}
	out.Reset()
	Render(&out, errors.New("no \u202ekcits"), false)
	if out.String() != "trunkline: no \\u202ekcits\n" {
		t.Errorf("%q", out.String())
	}
}
