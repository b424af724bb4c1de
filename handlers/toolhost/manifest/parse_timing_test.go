package manifest

import (
	"fmt"
	"strings"
	"testing"
)

// shapes are manifests of about the largest size, each of much of one thing.
func shapes() map[string]string {
	fill := func(format, one string) string {
		room := maxManifestBytes - len(format)
		return fmt.Sprintf(format, strings.TrimSuffix(strings.Repeat(one, room/len(one)), ","))
	}
	one := func(old, to string) string {
		return strings.Replace(strings.ReplaceAll(declared(`,"side_effects":["none"]`), "%", "%%"), old, to, 1)
	}
	process := func(exec string) string { return run(`{"kind":"process","command":["x"],` + exec + `}`) }
	var tools []string
	for size := len(packHead); size < maxManifestBytes-1000; size += len(tools[len(tools)-1]) + 1 {
		tool := process(`"env":{"A":"1"},"pool":{"max":1},"limits":{"as_mb":1}`)
		tool = strings.TrimSuffix(strings.TrimPrefix(tool, packHead), "]}")
		tools = append(tools, strings.Replace(tool, "AID.T.v1", fmt.Sprintf("AID.T%d.v1", len(tools)), 1))
	}
	return map[string]string{
		"tools":     packHead + strings.Join(tools, ",") + "]}",
		"id":        fill(one("toolpack.t", "toolpack.%s"), "a"),
		"aid":       fill(one("AID.T.v1", "AID.%sx"), ".v1"),
		"tags":      fill(one(`"tag.t"`, "%s"), `"",`),
		"effects":   fill(one(`"none"`, "%s"), `"x",`),
		"unknown":   fill(one(`"name"`, `%s,"name"`), `"\u0041":1,`),
		"schema":    fill(one(`"inputs_schema":{}`, `"inputs_schema":{"a":[%s]}`), "[[[]]],"),
		"command":   fill(run(`{"kind":"process","command":[%s]}`), `"x",`),
		"directory": fill(process(`"cwd":"%s"`), "a/../"),
		"env":       fill(process(`"env":{%s}`), `"A":"",`),
		"one env":   fill(process(`"env":{"A":"%s"}`), "x"),
		"escapes":   fill(process(`"env":{"A":"%s"}`), `\u0041`),
	}
}

// BenchmarkLargest: no shape of a manifest may take more than a small part of a second.
func BenchmarkLargest(b *testing.B) {
	for name, text := range shapes() {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_, _ = parse([]byte(text), "/")
			}
		})
	}
}

// TestLargest: what is refused of the largest manifests is what must be, so that the benchmark
// measures what it states.
func TestLargest(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds under the race detector")
	}
	refused := map[string]string{
		"aid": "tools[0].aid: must match", "env": "tools[0].exec.env: more than 256", "one env": "tools[0].exec.env: exceeds",
		"escapes": "tools[0].exec.env: exceeds",
	}
	for name, text := range shapes() {
		if len(text) > maxManifestBytes || len(text) < maxManifestBytes-2000 {
			t.Errorf("%s: %d bytes", name, len(text))
		}
		if _, why := parse([]byte(text), "/"); (why == "") != (refused[name] == "") || !strings.HasPrefix(why, refused[name]) {
			t.Errorf("%s: %.100s", name, why)
		}
	}
}
