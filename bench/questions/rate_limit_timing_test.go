package questions

// Question: what does the rate limiter's decision cost with 1, 1000 and 100,000 users?

import (
	"fmt"
	"testing"
	"time"

	"trunkline/engine/kernel"
)

func BenchmarkRateLimit(b *testing.B) { measure(b, rateLimits()) }

func rateLimits() []question {
	var all []question
	for _, users := range []int{1, 1000, 100_000} {
		all = append(all, question{name: fmt.Sprintf("users=%d", users), free: true, prepare: func(tb testing.TB) work {
			k, user, i := kernel.New(kernel.Config{MaxRateLimitUsers: users}), []byte(uuid('u', 0)), 0
			// Each user asks every ten minutes: there are six stamps in its hour.
			step := 10 * time.Minute / time.Duration(users)
			run := func() bool {
				i++
				number(user, i*7919%users)
				return k.CheckRate(kernel.Instant{Mono: int64(i) * int64(step)}, user, true).Allowed
			}
			for range 8 * users { // until the logs are as long as they get
				if !run() {
					tb.Fatal("refused")
				}
			}
			return work{run: func() { run() }}
		}})
	}
	return all
}
