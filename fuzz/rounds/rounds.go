// Package rounds decides how much work a randomized or repeated test does. A test names its usual
// amount, which make test has time for, and a smaller one for -short. LONG_TESTS=N multiplies the
// usual amount by N; make test-long sets it. It has no TRUNKLINE_ in front: programs that tests
// start warn of names that look like settings.
package rounds

import (
	"os"
	"strconv"
	"testing"
)

// variable is the environment variable that multiplies the usual amounts: a whole number from 1 on.
const variable = "LONG_TESTS"

// Of returns short under -short, else usual times the factor of Variable.
func Of(short, usual int) int {
	if testing.Short() {
		return short
	}
	return usual * factor()
}

// Few is Of for a test whose rounds take seconds: the long form has twice the usual amount.
func Few(short, usual int) int {
	if Long() {
		return 2 * usual
	}
	return Of(short, usual)
}

// Pick returns usual, or in the long form long, for a test whose long form is no multiple of what
// make test has time for.
func Pick(usual, long int) int {
	if Long() {
		return long
	}
	return usual
}

// Step returns the distance between the cases that a test tries of a long row of them: short under
// -short, else usual divided by the factor of Variable, and no less than 1.
func Step(short, usual int) int {
	if testing.Short() {
		return short
	}
	return max(1, usual/factor())
}

// Long reports whether a test has time for its long form: Variable is set, and the run is not
// -short.
func Long() bool { return !testing.Short() && factor() > 1 }

// factor panics on a value that is no factor: a run that was meant to be long must not be a usual
// one.
func factor() int {
	text := os.Getenv(variable)
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		panic("cannot read " + variable + "=" + text + ": it is a whole number from 1 on")
	}
	return n
}
