package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/engine/journal"
)

func TestFirstSignalEndsTheContextSecondTheProcess(t *testing.T) {
	var talk bytes.Buffer
	exited := make(chan int, 1)
	ctx, stop := untilSignal(t.Context(), &talk, func(code int) { exited <- code })
	defer stop()
	raise := func(s syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	raise(syscall.SIGTERM)
	<-ctx.Done()
	time.Sleep(signalPause)
	select {
	case <-exited:
		t.Fatal("the first signal ended the process")
	default:
	}
	raise(syscall.SIGINT)
	if code := <-exited; code != cli.CodeFailed {
		t.Errorf("exit code %d, want %d", code, cli.CodeFailed)
	}
	if !strings.Contains(talk.String(), "stopped by a second signal") {
		t.Errorf("it said %q", talk.String())
	}
}

// TestTheSecondSignalCountsAfterAPause: one order that arrives several times is one order.
func TestTheSecondSignalCountsAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals, exits := make(chan os.Signal, 2), 0
		ctx, stop := untilOrder(t.Context(), signals, io.Discard, func(int) { exits++ })
		defer stop()
		at := func(d time.Duration, want int) {
			t.Helper()
			time.Sleep(d)
			signals <- syscall.SIGTERM
			synctest.Wait()
			if ctx.Err() == nil || exits != want {
				t.Errorf("%v, %d exits, want %d", ctx.Err(), exits, want)
			}
		}
		at(time.Hour, 0)
		at(0, 0)
		at(signalPause-1, 0)
		at(1, 1)
	})
}

func TestStopLeavesSignalsAlone(t *testing.T) {
	ctx, stop := untilSignal(t.Context(), &bytes.Buffer{}, func(int) { t.Error("exit was called") })
	stop()
	if ctx.Err() == nil {
		t.Error("the context outlives its stop")
	}
}

func TestHints(t *testing.T) {
	f := func(err error, code int, hint string) {
		t.Helper()
		got := withHint(err)
		var e *cli.Error
		found := errors.As(got, &e) && e.Hint != ""
		if cli.Exit(got) != code || found != (hint != "") || (found && !strings.Contains(e.Hint, hint)) {
			t.Errorf("withHint(%v) = %#v", err, got)
		}
	}
	f(nil, cli.CodeOK, "")
	f(errors.New("x"), cli.CodeFailed, "")
	f(fmt.Errorf("cannot: %w", syscall.EADDRINUSE), cli.CodeFailed, "--listen")
	f(fmt.Errorf("cannot: %w", syscall.EACCES), cli.CodeNotAllowed, "may not")
	f(fmt.Errorf("cannot: %w", journal.ErrLocked), cli.CodeFailed, "store.dir")
	f(fmt.Errorf("cannot: %w", &journal.ErrModeMismatch{Made: journal.Always, Asked: journal.Interval}), cli.CodeFailed, "store.mode=always")
	f(fmt.Errorf("cannot: %w", &journal.DamageError{Where: "x", Index: 8, Err: errors.New("y")}), cli.CodeFailed, "--recover-to-index 7")
}

func TestEveryVerbIsDescribed(t *testing.T) {
	for _, c := range newRootCmd().Commands() {
		if c.Short == "" || c.RunE == nil && !c.HasSubCommands() {
			t.Errorf("%s has no short description or does nothing", c.Name())
		}
		if c.PersistentPreRun != nil || c.PersistentPreRunE != nil {
			t.Errorf("%s has a PersistentPreRun, which hides the root's: see markStart", c.Name())
		}
	}
}
