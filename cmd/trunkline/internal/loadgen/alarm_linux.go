package loadgen

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// timerFile is an alarm of the kernel that the runtime's poller waits for like for a socket: some
// 20 µs late instead of up to a millisecond, which would be in every latency.
type timerFile struct {
	f   *os.File
	fd  int
	buf [8]byte
}

// newAlarm returns the most precise alarm there is.
func newAlarm() alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return timerAlarm{}
	}
	return &timerFile{f: os.NewFile(uintptr(fd), "timer"), fd: fd}
}

func (t *timerFile) wait(d time.Duration) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))}
	if err := unix.TimerfdSettime(t.fd, 0, &spec, nil); err != nil {
		time.Sleep(d)
		return
	}
	if _, err := t.f.Read(t.buf[:]); err != nil {
		time.Sleep(d)
	}
}

func (t *timerFile) close() { t.f.Close() }
