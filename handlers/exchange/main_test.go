package exchange

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"trunkline/engine/envelope"
)

// childEnv makes the test binary run one command as a program of its own; its value is the
// command's name.
const childEnv = "PROCESS_TEST_COMMAND"

func TestMain(m *testing.M) {
	if name, ok := os.LookupEnv(childEnv); ok {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // as the program does
		os.Exit(Command(name, os.Stdin, os.Stdout, os.Stderr, testOptions()))
	}
	goleak.VerifyTestMain(m)
}

// fixedClock is the clock of the worked examples (envelope §9).
func fixedClock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func newEngine() *envelope.Engine { return envelope.NewEngine(envelope.Options{Now: fixedClock}) }

func testOptions() Options {
	return Options{MaxBodyBytes: defaultMaxBodyBytes, Engine: newEngine(), Version: Build{Server: "v9", BuildTime: "now", Go: "go1"}}
}

// defaultMaxBodyBytes is the largest text of a test without a limit of its own.
const defaultMaxBodyBytes = 5 << 20

// withDefaults returns c with its zero members filled in.
func (c HTTPConfig) withDefaults() HTTPConfig {
	orInt := func(n *int, by int) {
		if *n <= 0 {
			*n = by
		}
	}
	orTime := func(d *time.Duration, by time.Duration) {
		if *d <= 0 {
			*d = by
		}
	}
	orInt(&c.MaxBodyBytes, defaultMaxBodyBytes)
	orInt(&c.MaxInFlight, 256)
	orInt(&c.MaxHeaderBytes, 64<<10)
	orInt(&c.MaxConnections, 1024)
	orTime(&c.ReadHeaderTimeout, 10*time.Second)
	orTime(&c.ReadBodyTimeout, 30*time.Second)
	orTime(&c.IdleTimeout, 120*time.Second)
	orTime(&c.WriteTimeout, 30*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
