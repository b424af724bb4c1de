package kit

import (
	"testing"

	"go.uber.org/goleak"
)

// Leaks runs the tests of a package, and fails where they leave goroutines behind.
func Leaks(m *testing.M) { goleak.VerifyTestMain(m, Kept()...) }

// Kept are the goroutines that libraries leave: those of gnet's pool of workers live as long as the
// process, Pebble leaves one where an opening fails late, and a NATS server that is shut down while
// it creates a stream leaves the file store of that stream, with the clock that file stores share.
func Kept() (kept []goleak.Option) {
	const pool, nats = "github.com/panjf2000/ants/v2.", "github.com/nats-io/nats-server/v2/server"
	for _, f := range []string{pool + "(*poolCommon).purgeStaleWorkers", pool + "(*poolCommon).ticktock", pool + "(*goWorker).run.func1",
		"github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter",
		nats + ".(*fileStore).flushStreamStateLoop", nats + "/ats.Register.func1"} {
		kept = append(kept, goleak.IgnoreAnyFunction(f))
	}
	return kept
}
