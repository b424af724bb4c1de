package reactor

import (
	"context"
	"fmt"
	"log/slog"
)

// gnetLogger logs gnet's lines one level lower: gnet warns of what is ordinary here, such as an
// event of a connection that the same round has closed.
type gnetLogger struct{ log *slog.Logger }

func (g gnetLogger) put(l slog.Level, format string, args []any) {
	if g.log.Enabled(context.Background(), l) {
		g.log.Log(context.Background(), l, "gnet: "+fmt.Sprintf(format, args...))
	}
}

func (g gnetLogger) Debugf(string, ...any)             {}
func (g gnetLogger) Infof(string, ...any)              {}
func (g gnetLogger) Warnf(format string, args ...any)  { g.put(slog.LevelDebug, format, args) }
func (g gnetLogger) Errorf(format string, args ...any) { g.put(slog.LevelWarn, format, args) }
func (g gnetLogger) Fatalf(format string, args ...any) { g.put(slog.LevelError, format, args) }
