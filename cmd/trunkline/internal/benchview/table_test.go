package benchview

import (
	"strings"
	"testing"
	"time"

	"trunkline/cmd/trunkline/loadgen"
)

func TestTable(t *testing.T) {
	cols := []Column{{Head: "name"}, {Head: "a"}, {Head: "b", Drop: 1}, {Head: "c", Drop: 2}}
	rows := [][]string{{"first row", "1", "22", "333"}, {"日本", "1,000"}}
	f := func(width int, want ...string) {
		t.Helper()
		if got := strings.Join(Table(width, cols, rows), "\n"); got != strings.Join(want, "\n") {
			t.Errorf("in %d:\n%s", width, got)
		}
	}
	f(80, "name           a   b    c", "first row      1  22  333", "日本       1,000")
	f(25, "name           a   b    c", "first row      1  22  333", "日本       1,000")
	f(24, "name           a   b", "first row      1  22", "日本       1,000") // c goes first
	f(19, "name           a", "first row      1", "日本       1,000")
	f(14, "name         a", "first …      1", "日本     1,000") // then the names
	f(0, "name        a", "first…      1", "日本    1,000")     // no less: the block cuts it, a file keeps the numbers
}

func TestTableWithoutRows(t *testing.T) {
	if got := Table(10, []Column{{Head: "name"}, {Head: "n"}}, nil); len(got) != 1 || got[0] != "name  n" {
		t.Errorf("%q", got)
	}
}

func TestLabelled(t *testing.T) {
	f := func(width int, want string) {
		t.Helper()
		l := Labelled(width, "rate", Span{"due 10", Plain}, Span{"done 9", Bad}, Span{"sent 10", Plain})
		if got := l.Render(width, false); got != want {
			t.Errorf("in %d: %q, want %q", width, got, want)
		}
	}
	f(80, "rate    due 10  done 9  sent 10")
	f(31, "rate    due 10  done 9  sent 10")
	f(30, "rate    due 10  done 9")
	f(21, "rate    due 10")
	f(13, "rate    due …") // the first is cut, not left out
	f(3, "ra…")
	f(0, "")
}

func TestColors(t *testing.T) {
	l := Line{{"a", Faint}, {"b", Plain}, {"", Bad}, {"cdef", Good}}
	f := func(width int, color bool, want string) {
		t.Helper()
		if got := l.Render(width, color); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f(6, false, "abcdef")
	f(4, false, "abc…")
	f(6, true, "\x1b[2ma\x1b[0mb\x1b[32mcdef\x1b[0m")
	f(4, true, "\x1b[2ma\x1b[0mb\x1b[32mc…\x1b[0m") // an attribute never outlives its text
	f(1, true, "\x1b[2ma\x1b[0m")
}

func TestScheduleText(t *testing.T) {
	f := func(p loadgen.Plan, want string) {
		t.Helper()
		if got := scheduleText(&p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	constant := loadgen.Schedule{Kind: loadgen.Constant, To: 50_000}
	f(loadgen.Plan{Schedule: constant, Duration: time.Minute}, "constant 50,000/s for 1m")
	f(loadgen.Plan{Schedule: constant, Count: 1e6}, "constant 50,000/s, at most 1,000,000 requests")
	f(loadgen.Plan{Schedule: loadgen.Schedule{Kind: loadgen.Ramp, From: 0.5, To: 1e7}, Duration: time.Second, Warmup: time.Second},
		"ramp from 0.50/s to 10,000,000/s for 1s, after 1s of warm-up")
	f(loadgen.Plan{Schedule: loadgen.Schedule{Kind: loadgen.Max}, Duration: time.Hour}, "as fast as it goes for 1h")
}
