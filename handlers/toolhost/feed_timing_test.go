package toolhost

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/engine/link"
	"trunkline/handlers/toolhost/tool"
	"trunkline/handlers/toolhost/tools"
)

// pipelined returns 64 KiB of the lines that line makes, one after the other.
func pipelined(line func(i int) string) (in []byte, lines int) {
	for ; ; lines++ {
		if l := line(lines) + "\n"; len(in)+len(l) <= 64<<10 {
			in = append(in, l...)
			continue
		}
		return in, lines
	}
}

// BenchmarkFeed: 64 KiB of pipelined requests in one turn, as an event loop hands them over.
func BenchmarkFeed(b *testing.B) {
	env, err := tools.EnvFrom(func(string) string { return "" }, b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	var entries []Entry
	for _, t := range tools.Builtins(env) {
		entries = append(entries, Entry{Descriptor: t.Descriptor, Tool: t.Tool})
	}
	reg, err := NewRegistry(entries)
	if err != nil {
		b.Fatal(err)
	}
	f := func(name string, line func(i int) string) {
		b.Run(name, func(b *testing.B) {
			srv := New(Config{Registry: reg})
			defer srv.Close()
			s := srv.OpenSocket(link.NewPort(1, "127.0.0.1:1"))
			defer s.Closed()
			in, lines := pipelined(line)
			now := link.Now()
			feed := func(out []byte) []byte {
				for used := 0; used < len(in); {
					n, after, v := s.Feed(in[used:], out, now)
					if used, out = used+n, after; v != link.More && v != link.Yield {
						b.Fatalf("verdict %d", v)
					}
				}
				return out
			}
			out := feed(nil)
			if strings.Count(string(out), `"status":"`+tool.OK.String()) != lines {
				b.Fatalf("not every line went well: %.300s", out)
			}
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				out = feed(out[:0])
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N*lines), "ns/line")
		})
	}
	f("noop", func(int) string { return `{"aid":"AID.NOOP.v1"}` })
	f("hit", func(i int) string { return fmt.Sprintf(`{"aid":"AID.NOOP.v1","idempotency_key":"key-%d"}`, i%8) })
	f("slot", func(i int) string { return fmt.Sprintf(`{"aid":"AID.TEST.ECHO.v1","input_json":"{\"x\":%d}"}`, i%8) })
}
