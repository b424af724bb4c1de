//go:build !race

package rows

const raceOn = false
