//go:build !race

package orchtest

const raceSlowdown = 1
