//go:build !linux

package loadgen

import "time"

func newAlarm() (wait func(time.Duration), stop func()) { return timerAlarm() }
