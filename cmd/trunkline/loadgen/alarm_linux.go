package loadgen

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// newAlarm waits for a timer of the kernel as the runtime's poller waits for a socket: some 20 µs
// late instead of up to a millisecond, which would be in every latency.
func newAlarm() (wait func(time.Duration), stop func()) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return timerAlarm()
	}
	f := os.NewFile(uintptr(fd), "timer")
	var buf [8]byte
	return func(d time.Duration) {
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))}
		err := unix.TimerfdSettime(fd, 0, &spec, nil)
		if err == nil {
			_, err = f.Read(buf[:])
		}
		if err != nil {
			time.Sleep(d)
		}
	}, func() { f.Close() }
}
