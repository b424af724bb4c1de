//go:build !linux

package loadgen

// newAlarm returns the most precise alarm there is.
func newAlarm() alarm { return timerAlarm{} }
