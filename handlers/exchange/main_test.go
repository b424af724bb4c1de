package exchange

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"trunkline/engine/envelope"
)

// childEnv makes the test binary run one command as a program of its own; its value is the command's name.
const childEnv = "PROCESS_TEST_COMMAND"

func TestMain(m *testing.M) {
	if name, ok := os.LookupEnv(childEnv); ok {
		os.Exit(Command(name, os.Stdin, os.Stdout, os.Stderr, testOptions()))
	}
	goleak.VerifyTestMain(m)
}

// fixedClock is the clock of the worked examples (envelope §9).
func fixedClock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func newEngine() *envelope.Engine { return envelope.NewEngine(envelope.Options{Now: fixedClock}) }

func testOptions() Options {
	return Options{Engine: newEngine(), Version: Build{Server: "v9", BuildTime: "now", Go: "go1"}}
}
