//go:build !race

package envelopetest_test

const raceSlowdown = 1
