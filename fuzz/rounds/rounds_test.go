package rounds

import "testing"

func TestAmounts(t *testing.T) {
	f := func(value string, of, step int, long bool) {
		t.Helper()
		t.Setenv(variable, value)
		if testing.Short() {
			of, step, long = 2, 40, false
		}
		few := min(of, 10)
		if Of(2, 5) != of || Few(2, 5) != few || Step(40, 16) != step || Long() != long ||
			Pick(3, 4) != map[bool]int{false: 3, true: 4}[long] {
			t.Errorf("%q: %d, %d, %v; want %d, %d, %v", value, Of(2, 5), Step(40, 16), Long(), of, step, long)
		}
	}
	f("", 5, 16, false)
	f("1", 5, 16, false)
	f("8", 40, 2, true)
	f("100", 500, 1, true)
}

func TestNoFactor(t *testing.T) {
	for _, value := range []string{"0", "-1", "yes", "1.5"} {
		t.Setenv(variable, value)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is taken for %d", value, factor())
				}
			}()
			factor()
		}()
	}
}
