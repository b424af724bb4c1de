package main

import (
	"cmp"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
)

// untilHangup returns what delivers SIGHUP as an order to reload, until quiet is called; orders
// that come while one waits are one. A process whose terminal has gone gets that signal too: where
// there was one at the start and is none any more, it is an order to stop.
func untilHangup(stop func()) (orders <-chan os.Signal, quiet func()) {
	signals, attended := hangups()
	out, done := make(chan os.Signal, 1), make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case s := <-signals:
				if attended && !hasTerminal() {
					stop()
					return
				}
				select {
				case out <- s:
				default:
				}
			}
		}
	}()
	return out, func() { close(done) }
}

// hangups holds SIGHUP for the rest of the process, which it ends no more. attended is set where
// the process was started with a terminal that it is to end with.
var hangups = sync.OnceValues(func() (signals chan os.Signal, attended bool) {
	signals = make(chan os.Signal, 1)
	attended = !signal.Ignored(syscall.SIGHUP) && hasTerminal() // nohup(1) has it ignored
	signal.Notify(signals, syscall.SIGHUP)
	return signals, attended
})

// serves reports whether the process may be a server, for which a hangup is no end.
func serves() bool { return slices.Contains(os.Args[1:], "serve") }

// execAgain replaces the process by another run of the program. A server has no moment between the
// two at which a hangup ends it.
func execAgain(args, environ []string) error {
	program, err := os.Executable()
	if err != nil || !serves() {
		return cmp.Or(err, syscall.Exec(program, args, environ))
	}
	signals, attended := hangups()
	if !attended {
		signal.Ignore(syscall.SIGHUP)
		defer signal.Notify(signals, syscall.SIGHUP)
	}
	return syscall.Exec(program, args, environ)
}

// hasTerminal reports whether the process has a controlling terminal.
func hasTerminal() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}
