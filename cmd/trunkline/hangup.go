package main

import (
	"os"
	"os/signal"
	"syscall"
)

// untilHangup returns what delivers SIGHUP as an order to reload, until quiet is called; orders
// that come while one waits are one. A process whose terminal has gone gets that signal too: where
// there was one at the start and is none any more, it is an order to stop.
func untilHangup(stop func()) (orders <-chan os.Signal, quiet func()) {
	signals, out, done := make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan struct{})
	attended := !signal.Ignored(syscall.SIGHUP) && hasTerminal() // nohup(1) has it ignored
	signal.Notify(signals, syscall.SIGHUP)
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
	return out, func() {
		signal.Stop(signals)
		close(done)
	}
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
