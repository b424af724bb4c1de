package kit

import (
	"testing"

	"go.uber.org/goleak"
)

// Leaks runs the tests of a package, and fails where they leave goroutines behind.
func Leaks(m *testing.M) { goleak.VerifyTestMain(m, Kept()...) }

// Kept are the goroutines that libraries leave: those of gnet's pool of workers live as long as the
// process, and Pebble leaves one where an opening fails late.
func Kept() (kept []goleak.Option) {
	const pool = "github.com/panjf2000/ants/v2."
	for _, f := range []string{pool + "(*poolCommon).purgeStaleWorkers", pool + "(*poolCommon).ticktock", pool + "(*goWorker).run.func1",
		"github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"} {
		kept = append(kept, goleak.IgnoreAnyFunction(f))
	}
	return kept
}
