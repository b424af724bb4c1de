package benchview

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestCells(t *testing.T) {
	f := func(s string, want int) {
		t.Helper()
		if got := cells(s); got != want {
			t.Errorf("%q: %d cells, want %d", s, got, want)
		}
	}
	f("", 0)
	f("abc", 3)
	f("µs", 2)
	f("█▏·…", 4)
	f("日本語", 6)
	f("한글", 4)
	f("ＡＢ", 4)
	f("é", 1)        // e and an accent
	f("🚀", 2)        // emoji
	f("❤", 1)        // text form
	f("❤\ufe0f", 2)  // emoji form
	f("👩\u200d🚀", 2) // joined
	f("🏽", 2)
}

func TestClip(t *testing.T) {
	f := func(s string, n int, want string) {
		t.Helper()
		if got := clip(s, n); got != want {
			t.Errorf("%q to %d: %q, want %q", s, n, got, want)
		}
	}
	f("abc", 3, "abc")
	f("abcd", 3, "ab…")
	f("abcd", 1, "…")
	f("abcd", 0, "")
	f("abcd", -1, "")
	f("日本語", 6, "日本語")
	f("日本語", 5, "日本…")
	f("日本語", 4, "日…") // half a character is none
	f("e\u0301e\u0301e\u0301", 2, "e\u0301…")
}

func TestClean(t *testing.T) {
	f := func(s, want string) {
		t.Helper()
		if got := Clean(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
	f("plain 日本 🚀", "plain 日本 🚀")
	f("a\x1b[2Jb", `a\x1b[2Jb`)
	f("a\r\n\tb", `a\r\n b`)
	f("a\u009bb\u202eb\x7f", `a\u009bb\u202eb\x7f`)
	f("a\xffb", `a\xffb`)
}

func FuzzTexts(f *testing.F) {
	for _, s := range []string{"abc", "日本語", "👩\u200d🚀", "e\u0301", "❤\ufe0f", "\x1b[31mred", "a\xffb"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		s = Clean(s)
		if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			t.Errorf("not clean: %q", s)
		}
		n %= 100
		if got := clip(s, n); cells(got) > max(n, 0) {
			t.Errorf("%q to %d: %q has %d cells", s, n, got, cells(got))
		}
	})
}
