package lint

import (
	"regexp"
	"strings"
	"testing"
)

// The patterns are put together from pieces, so that this file does not match itself.
var (
	machinePath = regexp.MustCompile("(^|[\\s\"'`(=:])/(" + strings.Join([]string{"home", "root", "work", "Users", "mnt"}, "|") + ")/[A-Za-z0-9_.-]")
	unfinished  = regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "X" + "XX"}, "|") + `)\b`)
)

// TestNoMachinePaths keeps one machine's folders out of all files.
func TestNoMachinePaths(t *testing.T) {
	eachLine(t, func(at, line string) {
		if m := machinePath.FindString(line); m != "" {
			t.Errorf("%s: an absolute path of one machine: %s", at, strings.TrimSpace(m))
		}
	})
}

// TestNothingIsLeftForLater: what is not done is not in the tree; what is not meant to be done is
// written down as such.
func TestNothingIsLeftForLater(t *testing.T) {
	eachLine(t, func(at, line string) {
		if m := unfinished.FindString(line); m != "" {
			t.Errorf("%s: %s marks unfinished work: finish it or write down that it is left out on purpose", at, m)
		}
	})
}

func eachLine(t *testing.T, f func(at, line string)) {
	for path, text := range repository(t).texts {
		n := 0
		for line := range strings.Lines(text) {
			n++
			f(path+":"+itoa(n), line)
		}
	}
}
