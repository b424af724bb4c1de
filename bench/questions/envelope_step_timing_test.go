package questions

// Question: what does one engine step of an envelope in JSON cost, as that grows, beside decoding
// the same bytes into a map and encoding that again?

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"trunkline/engine/envelope"
)

func BenchmarkEnvelopeStep(b *testing.B) { measure(b, envelopeSteps()) }

func envelopeSteps() []question {
	var all []question
	for _, n := range outputSizes {
		size := max(n, 600)
		compact := steppedEnvelope(size)
		all = append(all,
			question{name: fmt.Sprintf("codec=trunkline/size=%d", size), free: true, prepare: stepWork(compact)},
			question{name: fmt.Sprintf("codec=encoding-json/size=%d", size), prepare: mapWork(compact)})
	}
	// Python's json.dumps sets a space behind every separator, which the compact form of the reply
	// has not.
	spaced := spacedOut(steppedEnvelope(4 << 10))
	return append(all,
		question{name: "codec=trunkline/spaced", free: true, prepare: stepWork(spaced)},
		question{name: "codec=encoding-json/spaced", prepare: mapWork(spaced)})
}

// spacedOut sets a space behind every colon and comma between members; the texts of the samples
// have neither behind a quote.
func spacedOut(text string) string {
	return strings.NewReplacer(`":`, `": `, `,"`, `, "`, `},{`, `}, {`).Replace(text)
}

func stepWork(text string) func(testing.TB) work {
	return func(tb testing.TB) work {
		src, engine := []byte(text), envelope.NewEngine(envelope.Options{})
		var dst []byte
		run := func() (err *envelope.Error) {
			dst, _, err = engine.Process(dst[:0], src)
			return err
		}
		if err := run(); err != nil {
			tb.Fatal(err.Message)
		}
		if !json.Valid(dst) || !bytes.Contains(dst, []byte(`"current_stage":"intent"`)) {
			tb.Fatalf("not the next stage: %.400s", dst)
		}
		return work{run: func() { run() }, bytes: len(src)}
	}
}

func mapWork(text string) func(testing.TB) work {
	return func(tb testing.TB) work {
		src := []byte(text)
		var out bytes.Buffer
		run := func() error {
			var m map[string]any
			if err := json.Unmarshal(src, &m); err != nil {
				return err
			}
			out.Reset()
			enc := json.NewEncoder(&out)
			enc.SetEscapeHTML(false)
			return enc.Encode(m)
		}
		if err := run(); err != nil || !json.Valid(out.Bytes()) {
			tb.Fatal(err)
		}
		return work{run: func() { _ = run() }, bytes: len(src)}
	}
}
