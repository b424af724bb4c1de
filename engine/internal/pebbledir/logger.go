package pebbledir

import (
	"context"
	"fmt"
	"log/slog"
)

// Logger gives pebble's lines to Log. Pebble does not expect Fatalf to return: Fail has to keep
// anything from being acknowledged from then on.
type Logger struct {
	Log  *slog.Logger
	Fail func(error)
}

// Infof implements pebble.Logger.
func (l Logger) Infof(format string, args ...any) {
	if l.Log.Enabled(context.Background(), slog.LevelDebug) {
		l.Log.Debug(fmt.Sprintf(format, args...))
	}
}

// Errorf implements pebble.Logger.
func (l Logger) Errorf(format string, args ...any) { l.Log.Error(fmt.Sprintf(format, args...)) }

// Fatalf implements pebble.Logger.
func (l Logger) Fatalf(format string, args ...any) { l.Fail(fatal(format, args)) }
