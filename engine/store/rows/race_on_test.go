//go:build race

package rows

const raceOn = true
