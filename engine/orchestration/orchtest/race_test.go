//go:build race

package orchtest

// raceSlowdown divides the random runs where the race detector makes each one slow.
const raceSlowdown = 20
