//go:build race

package journaltest

const raceEnabled = true
