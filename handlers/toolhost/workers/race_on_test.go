//go:build race

package workers

// raceEnabled reports whether the race detector is in the program. It takes more memory than the
// limits of a module's process allow.
const raceEnabled = true
