package obs

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lmittmann/tint"
)

// Log formats, the values of log.format.
const (
	FormatAuto = "auto" // text on a terminal, JSON otherwise
	FormatText = "text"
	formatJSON = "json"
)

// LogFormats lists the accepted values of log.format in the order shown to people.
func LogFormats() []string { return []string{FormatAuto, FormatText, formatJSON} }

// LogLevels lists the accepted values of log.level, from most to least talkative.
func LogLevels() []string { return []string{"debug", "info", "warn", "error"} }

// ParseLevel turns a value of log.level, in any letter case, into a slog level.
func ParseLevel(s string) (slog.Level, error) {
	switch strings.ToLower(s) {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("cannot use log level %q: want one of %s", s, strings.Join(LogLevels(), ", "))
}

// LogSink is where a server writes its lines. One that cannot be written is dropped and counted.
type LogSink struct {
	io.Writer
	dropped atomic.Uint64
}

// Write implements io.Writer.
func (s *LogSink) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	if err != nil {
		s.dropped.Add(1)
	}
	return n, err
}

// Dropped returns how many lines could not be written.
func (s *LogSink) Dropped() uint64 { return s.dropped.Load() }

// NewLogger returns a logger writing to w at the given level and format; at changes the level.
// Colour is used only on a terminal and never when the NO_COLOR environment variable is set.
func NewLogger(w io.Writer, level, format string) (log *slog.Logger, at *slog.LevelVar, err error) {
	lv, err := ParseLevel(level)
	if err != nil {
		return nil, nil, err
	}
	at = new(slog.LevelVar)
	at.Set(lv)
	tty := isTerminal(w)
	if format == FormatAuto {
		format = formatJSON
		if tty {
			format = FormatText
		}
	}
	switch format {
	case FormatText:
		return slog.New(tint.NewHandler(w, &tint.Options{
			Level:      at,
			TimeFormat: time.TimeOnly,
			NoColor:    !tty || os.Getenv("NO_COLOR") != "",
		})), at, nil
	case formatJSON:
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: at})), at, nil
	}
	return nil, nil, fmt.Errorf("cannot use log format %q: want one of %s", format, strings.Join(LogFormats(), ", "))
}

// isTerminal asks whether w is a character device, which is what people sit in front of.
func isTerminal(w io.Writer) bool {
	if s, ok := w.(*LogSink); ok {
		w = s.Writer
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	fi, err := f.Stat()
	return err == nil && fi.Mode()&os.ModeCharDevice != 0
}
