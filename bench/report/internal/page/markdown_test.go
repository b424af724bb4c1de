package page

import "testing"

func TestTable(t *testing.T) {
	tab := newTable("what", ">figure")
	tab.row("a|b", "1")
	if want := "| what | figure |\n|---|---:|\n| a\\|b | 1 |\n"; tab.String() != want {
		t.Errorf("%q, want %q", tab.String(), want)
	}
}

func TestFigures(t *testing.T) {
	f := func(v float64, wantFigure, wantExact string) {
		t.Helper()
		if figure(v) != wantFigure || exact(v) != wantExact {
			t.Errorf("%v is %s and %s, want %s and %s", v, figure(v), exact(v), wantFigure, wantExact)
		}
	}
	f(0, "-", "0")
	f(1, "1.00", "1")
	f(3.5, "3.50", "3.5")
	f(0.05, "0.0500", "0.05")
	f(0.0123456, "0.0123", "0.0123")
	f(27.345, "27.3", "27.3")
	f(99.96, "100", "100")
	f(100, "100", "100")
	f(999.6, "1,000", "1,000")
	f(1234567, "1,234,567", "1,234,567")
	f(-12345, "-12,345", "-12,345")
	f(-123456, "-123,456", "-123,456")
	f(1e-15, "0.000000000000", "0")
}
