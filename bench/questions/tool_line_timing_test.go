package questions

// Question: what does a line cost through the whole session of the tool server, 64 KiB of them at a
// time: a tool that does nothing, an idempotency key that was there before, and a tool that writes
// to the session's state?

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/engine/connection"
	"trunkline/handlers/toolhost"
	"trunkline/handlers/toolhost/builtin"
)

func BenchmarkToolLine(b *testing.B) { measure(b, toolLines()) }

func toolLines() []question {
	return []question{
		{name: "noop", free: true, prepare: toolWork(func(int) string { return `{"aid":"AID.NOOP.v1"}` })},
		{name: "hit", free: true, prepare: toolWork(func(i int) string { return fmt.Sprintf(`{"aid":"AID.NOOP.v1","idempotency_key":"key-%d"}`, i%8) })},
		{name: "slot", prepare: toolWork(func(i int) string {
			return fmt.Sprintf(`{"aid":"AID.TEST.ECHO.v1","input_json":"{\"x\":%d}"}`, i%8)
		})},
	}
}

func toolWork(line func(i int) string) func(testing.TB) work {
	return func(tb testing.TB) work {
		var in []byte
		lines := 0
		for next := line(0) + "\n"; len(in)+len(next) <= readSize; next = line(lines) + "\n" {
			in = append(in, next...)
			lines++
		}
		s, now := newToolSession(tb), connection.Now()
		var out []byte
		feed := func() {
			out = out[:0]
			for rest := in; len(rest) > 0; {
				used, after, v := s.Feed(rest, out, now)
				if out = after; v != connection.More && v != connection.Yield {
					tb.Fatalf("verdict %d", v)
				}
				rest = rest[used:]
			}
		}
		feed()
		feed()
		if ok := strings.Count(string(out), `"status":"OK"`); ok != lines {
			tb.Fatalf("%d of %d lines went well: %.300s", ok, lines, out)
		}
		return work{run: feed, ops: lines, bytes: len(in) / lines}
	}
}

// newToolSession is a connection of a tool server with the built-in tools.
func newToolSession(tb testing.TB) connection.Session {
	env, err := builtin.EnvFrom(func(string) string { return "" }, tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	var entries []toolhost.Entry
	for _, t := range builtin.Builtins(env) {
		entries = append(entries, toolhost.Entry{Descriptor: t.Descriptor, Tool: t.Tool})
	}
	registry, err := toolhost.NewRegistry(entries)
	if err != nil {
		tb.Fatal(err)
	}
	server := toolhost.New(toolhost.Config{Registry: registry})
	s := server.OpenSocket(connection.NewPort(1, "127.0.0.1:1"))
	tb.Cleanup(func() {
		s.Closed()
		if err := server.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}
