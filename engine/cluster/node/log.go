package node

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of what a server logs. A peer that is refused tries again each second.
const (
	logPerSecond = 2
	logBurst     = 20
	maxLogLine   = 1024 // bytes

	// A node that is down is tried each second, over each route. unreachable begins the format of
	// those lines, of which there is one in unreachableEvery.
	unreachable      = "Error trying to connect to route"
	unreachableEvery = time.Minute

	// outOfSpace begins the formats of what a server logs that has no room on its disk and ends the
	// keeping of its streams.
	outOfSpace = "JetStream out of "
)

// serverLog passes the log of a server on and keeps its latest error. Notices are debug lines: this
// process logs what changes itself.
type serverLog struct {
	to    *slog.Logger
	limit *rate.Limiter
	tries *rate.Limiter // of lines about nodes that are down

	mu         sync.Mutex
	last       string
	at         time.Time
	fatal      string
	suppressed int
}

func newServerLog(to *slog.Logger) *serverLog {
	return &serverLog{to: to, limit: rate.NewLimiter(logPerSecond, logBurst), tries: rate.NewLimiter(rate.Every(unreachableEvery), 1)}
}

// Noticef implements server.Logger.
func (l *serverLog) Noticef(format string, v ...any) { l.write(slog.LevelDebug, format, v) }

// Warnf implements server.Logger.
func (l *serverLog) Warnf(format string, v ...any) { l.write(slog.LevelWarn, format, v) }

// Errorf implements server.Logger.
func (l *serverLog) Errorf(format string, v ...any) {
	level := slog.LevelError
	if strings.HasPrefix(format, unreachable) {
		level = slog.LevelWarn
	}
	text := l.write(level, format, v)
	if strings.HasPrefix(format, outOfSpace) {
		l.giveUp("the disk has no room: " + text)
	}
	l.keep(text)
}

// Fatalf implements server.Logger. The server gives up what it was doing, and the process goes on:
// failure has the reason.
func (l *serverLog) Fatalf(format string, v ...any) {
	text := l.write(slog.LevelError, format, v)
	l.keep(text)
	l.giveUp(text)
}

// giveUp keeps why the server has given up what it was doing: the first reason.
func (l *serverLog) giveUp(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fatal == "" {
		l.fatal = why
	}
}

// Debugf implements server.Logger. The server does not call it: see run.
func (l *serverLog) Debugf(string, ...any) {}

// Tracef implements server.Logger. The server does not call it: see run.
func (l *serverLog) Tracef(string, ...any) {}

func (l *serverLog) write(level slog.Level, format string, v []any) string {
	text := fmt.Sprintf(format, v...)
	if len(text) > maxLogLine {
		text = text[:maxLogLine]
	}
	if !l.to.Enabled(context.Background(), level) {
		return text
	}
	limit := l.limit
	if strings.HasPrefix(format, unreachable) {
		limit = l.tries
	}
	if level > slog.LevelDebug && !limit.Allow() {
		l.mu.Lock()
		l.suppressed++
		l.mu.Unlock()
		return text
	}
	l.mu.Lock()
	n := l.suppressed
	l.suppressed = 0
	l.mu.Unlock()
	if n > 0 {
		l.to.Log(context.Background(), level, text, "suppressed_lines", n)
	} else {
		l.to.Log(context.Background(), level, text)
	}
	return text
}

func (l *serverLog) keep(text string) {
	l.mu.Lock()
	l.last, l.at = text, time.Now()
	l.mu.Unlock()
}

// latest returns the latest error that is not older than age, "" if there is none.
func (l *serverLog) latest(age time.Duration) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == "" || time.Since(l.at) > age {
		return ""
	}
	return l.last
}

// failure returns why the server gave up, "" if it did not.
func (l *serverLog) failure() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}
