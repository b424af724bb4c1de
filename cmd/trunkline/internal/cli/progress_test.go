package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestProgress looks at each picture of a bar: the text between two returns of the carriage.
func TestProgress(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(0, 0)
	p := NewProgress(&b, func() time.Time { return now })
	want := func(why, line string) {
		t.Helper()
		if got := b.String(); got != line {
			t.Errorf("%s: %q, want %q", why, got, line)
		}
		b.Reset()
	}
	p.Clear()
	want("nothing was drawn", "")
	p.Begin("log", "records", 1000)
	want("the beginning", "\rlog       [                        ]   0%")
	now = now.Add(redrawEvery - 1)
	p.Set(100)
	want("too early", "")
	now = now.Add(1 - redrawEvery + time.Second)
	p.Set(500)
	want("half", "\rlog       [============            ]  50%  500 records/s  1s left")
	now = now.Add(time.Second)
	p.Set(5000)
	want("beyond the end", "\r"+fmt.Sprintf("%-65s", "log       [========================] 100%  2500 records/s  0s left"))
	p.Begin("snapshots", "bytes", 0)
	want("nothing to do", "\r"+fmt.Sprintf("%-66s", "snapshots [========================] 100%"))
	now = now.Add(time.Second)
	p.Set(1500)
	want("bytes", "\rsnapshots [========================] 100%  1.5 kB/s  0s left")
	p.Clear()
	want("the end", "\r"+strings.Repeat(" ", 60)+"\r")
}

func TestProgressIsNeverWiderThanItsLine(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(0, 0)
	p := NewProgress(&b, func() time.Time { return now })
	p.Begin("a phase with a very long name", strings.Repeat("u", 50), 1<<63)
	now = now.Add(time.Second)
	p.Set(1)
	for _, line := range strings.Split(b.String(), "\r") {
		if len(line) > progressWidth {
			t.Errorf("%d characters: %q", len(line), line)
		}
	}
}

func TestNoProgress(t *testing.T) {
	var p *Progress
	p.Begin("log", "records", 1)
	p.Set(1)
	p.Clear()
}

func TestBytes(t *testing.T) {
	f := func(n uint64, want string) {
		t.Helper()
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	f(0, "0 B")
	f(999, "999 B")
	f(1000, "1.0 kB")
	f(999_949, "999.9 kB")
	f(999_950, "1.0 MB")
	f(67_108_864, "67.1 MB")
	f(1<<64-1, "18.4 EB")
}

func TestInterrupted(t *testing.T) {
	if got := Exit(Interrupted(fmt.Errorf("x: %w", context.Canceled))); got != CodeInterrupted {
		t.Errorf("code %d", got)
	}
	if err := errors.New("x"); Interrupted(err) != err || Interrupted(nil) != nil {
		t.Error("another error was changed")
	}
	ctx, stop := UntilSignal(t.Context())
	defer stop()
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(os.Interrupt)
	}
	if err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
}

// TestProgressLines: without a terminal there is a line in ten seconds, whatever the phase.
func TestProgressLines(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(0, 0)
	p := NewProgressLines(&b, func() time.Time { return now })
	want := func(why, text string) {
		t.Helper()
		if got := b.String(); got != text {
			t.Errorf("%s: %q, want %q", why, got, text)
		}
		b.Reset()
	}
	p.Begin("copy", "bytes", 4000)
	now = now.Add(lineEvery - 1)
	p.Set(1000)
	want("short work has no line", "")
	now = now.Add(1)
	p.Set(2000)
	want("ten seconds", "trunkline: copy  50%  200 B/s  10s left\n")
	p.Begin("log", "records", 100)
	p.Set(1)
	want("too early", "")
	now = now.Add(lineEvery)
	p.Set(100)
	want("ten more", "trunkline: log 100%  10 records/s  0s left\n")
	p.Clear()
	want("there is nothing to clear", "")
}
