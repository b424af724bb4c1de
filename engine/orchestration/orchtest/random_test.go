package orchtest

import (
	"flag"
	"strings"
	"testing"
	"time"

	"trunkline/codec/wire"
	"trunkline/fuzz/rounds"
)

// outcome names what a call came to, for counting.
func (a answer) outcome() string {
	if a.code != wire.OK {
		return strings.Join(strings.Fields(a.msg)[:2], " ")
	}
	m, _ := a.want.(obj)
	switch kind := m["kind"]; kind {
	case nil:
		return "a state or an envelope"
	case "TERMINATE":
		text := m["termination_message"].(string)
		if strings.HasPrefix(text, "Agent") {
			return "Agent failed"
		}
		return strings.Join(append(strings.Fields(text), "", "")[:3], " ")
	default:
		return kind.(string)
	}
}

// shrink drops steps while the program still fails, and returns the shortest it found.
func shrink(p program, fresh func() *runner) (program, string) {
	fails := func(p program) (int, string) { return fresh().run(p) }
	step, diff := fails(p)
	if diff == "" {
		return p, "not seen again when the program ran alone"
	}
	if step >= 0 && step < len(p.ops) {
		p.ops = p.ops[:step+1]
	}
	for i := len(p.ops) - 1; i >= 0; i-- {
		shorter := p
		shorter.ops = append(append([]op(nil), p.ops[:i]...), p.ops[i+1:]...)
		if _, d := fails(shorter); d != "" {
			p, diff = shorter, d
		}
	}
	return p, diff
}

var seedFlag = flag.Uint64("seed", 0, "replays the random runs of this seed; 0: of a new one")

func newSeed() uint64 {
	if *seedFlag != 0 {
		return *seedFlag
	}
	return uint64(time.Now().UnixNano())
}

// TestRandomRuns: whole conversations about random pipelines go as in the model. A failure prints
// the seed, and -seed replays it.
func TestRandomRuns(t *testing.T) {
	runs, seed := rounds.Pick(2_000, rounds.Of(2_000, 12_500/raceSlowdown)), newSeed()
	t.Logf("seed %d", seed)
	r := newRunner()
	for n := range runs {
		p := makeProgram(seeded(seed, uint64(n)))
		if step, diff := r.run(p); diff != "" {
			small, again := shrink(p, newRunner)
			t.Fatalf("seed %d run %d step %d%s\nshortest found:\n%s%s", seed, n, step, diff, small, again)
		}
	}
}

// TestRandomRunsUnderALimit: with little room for replies too, no reply is ever larger, and a
// refusal changes nothing.
func TestRandomRunsUnderALimit(t *testing.T) {
	runs, seed := rounds.Pick(700, rounds.Of(2_000, 2_500/raceSlowdown)), newSeed()
	t.Logf("seed %d", seed)
	for most := 1600; most <= 2000; most += 100 {
		r := limitedTo(most)
		for n := range runs / 5 {
			p := makeProgram(seeded(seed, uint64(n)))
			if step, diff := r.run(p); diff != "" {
				small, again := shrink(p, func() *runner { return limitedTo(most) })
				t.Fatalf("limit %d seed %d run %d step %d%s\nshortest found:\n%s%s", most, seed, n, step, diff, small, again)
			}
		}
		t.Logf("limit %d: %d refusals", most, r.large)
		if r.large == 0 {
			t.Errorf("limit %d: nothing was refused", most)
		}
	}
}

// TestRandomRunsReach: the random programs come to everything that can happen, or they would prove
// little.
func TestRandomRunsReach(t *testing.T) {
	r := newRunner()
	for n := range 2_000 {
		if _, diff := r.run(makeProgram(seeded(1, uint64(n)))); diff != "" {
			t.Fatalf("run %d%s", n, diff)
		}
	}
	for _, outcome := range []string{
		"RUN_AGENT", "WAIT_INTERRUPT", "Session already terminated", "Pipeline completed ", "Agent failed", "Edge limit exceeded:",
		"Bounds exceeded: MAX_LLM_CALLS_EXCEEDED", "Bounds exceeded: MAX_ITERATIONS_EXCEEDED", "Bounds exceeded: MAX_AGENT_HOPS_EXCEEDED",
		"a state or an envelope", "Unknown process:", "Process p", "Expected result", "Session already", "Stage not", "Envelope e",
		"Pipeline name", "Duplicate stage",
	} {
		n := r.seen[outcome]
		if outcome == "Process p" || outcome == "Envelope e" {
			for o, k := range r.seen {
				if strings.HasPrefix(o, outcome) {
					n += k
				}
			}
		}
		if n < 20 {
			t.Errorf("%q came %d times", outcome, n)
		}
	}
}

// FuzzReports: the fuzzer's bytes are the choices of a program.
func FuzzReports(f *testing.F) {
	f.Add([]byte{})
	for n := range uint64(8) {
		d := seeded(n, 0)
		data := make([]byte, 400)
		for i := range data {
			data[i] = byte(d(256))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := makeProgram(fromBytes(data))
		if step, diff := newRunner().run(p); diff != "" {
			small, again := shrink(p, newRunner)
			t.Fatalf("step %d%s\nshortest found:\n%s%s", step, diff, small, again)
		}
	})
}
