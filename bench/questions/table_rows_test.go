package questions

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"

	"trunkline/engine/kernel"
)

// tableSpare is how many ended processes a table has room for beside its rows: creations evict
// them.
const tableSpare = 256

// tableStep is the time between two creations in nanoseconds, so that no user's log of stamps grows
// beyond some hundreds.
const tableStep = 40e6

const tableUsers = 256

// table is a process table of n rows that are all READY whenever no benchmark is at work.
type table struct {
	k    *kernel.Kernel
	n    int
	mono atomic.Int64
	made atomic.Int64
}

// tables are made once in a process: the largest takes seconds.
var tables = map[string]func() *table{
	"10k": sync.OnceValue(func() *table { return filledTable(10_000) }),
	"1M":  sync.OnceValue(func() *table { return filledTable(1_000_000) }),
	"10M": sync.OnceValue(func() *table { return filledTable(10_000_000) }),
}

func tableOf(tb testing.TB, rows string) *table {
	tb.Helper()
	if rows != "10k" && testing.Short() {
		tb.Skip("a million rows take seconds to create, ten million also 4 GB")
	}
	t := tables[rows]()
	if got := t.k.Len(); got != t.n+tableSpare {
		tb.Fatalf("the table holds %d processes, wanted %d", got, t.n+tableSpare)
	}
	return t
}

// filledTable creates n processes of 36-byte names, and as many ended ones as there is room for.
func filledTable(n int) *table {
	quota := kernel.BuiltinQuota()
	quota[kernel.RateLimitRPM], quota[kernel.RateLimitRPH], quota[kernel.RateLimitBurst] = 1_000_000, 1_000_000, 1_000_000
	t := &table{k: kernel.New(kernel.Config{MaxProcesses: n + tableSpare, Defaults: quota}), n: n}
	// Nothing that goes into a table is garbage: a collection meanwhile would only take longer.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	c := t.creator()
	for i := range n + tableSpare {
		res := c.create()
		if i >= n && res == kernel.OK {
			res = c.end()
		}
		if res != kernel.OK {
			panic(fmt.Sprintf("BUG: cannot fill a table of %d: result %d", n, res))
		}
	}
	return t
}

// creator makes processes on one goroutine.
type creator struct {
	t    *table
	args kernel.CreateArgs
}

func (t *table) creator() *creator {
	return &creator{t: t, args: kernel.CreateArgs{Priority: kernel.Normal,
		PID: []byte(uuid('p', 0)), RequestID: []byte(uuid('q', 0)), UserID: []byte(uuid('u', 0)), SessionID: []byte(uuid('s', 0))}}
}

// create adds the next process; the table's clock goes on by a step.
func (c *creator) create() kernel.Result {
	n := int(c.t.made.Add(1)) - 1
	number(c.args.PID, n)
	number(c.args.RequestID, n)
	number(c.args.UserID, n%tableUsers)
	number(c.args.SessionID, n)
	res, _ := c.t.k.Create(kernel.Instant{Mono: c.t.mono.Add(tableStep)}, &c.args, nil)
	return res
}

// end ends the process that was created last.
func (c *creator) end() kernel.Result {
	return c.t.k.Terminate(kernel.Instant{Mono: c.t.mono.Load()}, c.args.PID, nil, nil)
}

// number writes n as the last eight digits of a 36-byte name.
func number(name []byte, n int) {
	const digits = "0123456789abcdef"
	for i := 35; i >= 28; i-- {
		name[i] = digits[n&15]
		n >>= 4
	}
}

// scattered gives a number below n in an order that no cache foresees: Weyl's sequence, its upper
// half scaled.
func scattered(i, n int) int {
	return int(uint64(uint32(uint64(i)*0x9e3779b97f4a7c15>>32)) * uint64(n) >> 32)
}
