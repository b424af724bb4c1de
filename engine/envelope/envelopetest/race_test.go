//go:build race

package envelopetest_test

// raceSlowdown divides the random runs where the race detector makes each one slow.
const raceSlowdown = 10
