package goal

import "testing"

// member is one figure of a goal.
type member struct {
	name   string
	v, cpu float64
}

func TestEvaluate(t *testing.T) {
	f := func(g Goal, want Verdict, measured float64, members ...member) {
		t.Helper()
		for _, m := range members {
			g.AddCPU(m.name, m.v, m.cpu)
		}
		if g.Evaluate(); g.Verdict != want || g.Measured != measured || Missed([]Goal{{}, g}) != (want == Miss) {
			t.Errorf("%+v, want %s with %v", g, want, measured)
		}
	}
	least := Goal{Must: 2, AtLeast: true}
	f(least, None, 0)
	f(least, None, 0, member{"a", 0, 5}) // was not measured
	f(least, Pass, 2, member{"a", 2, 0})
	f(least, Miss, 1.9, member{"a", 1.9, 0})
	f(least, Miss, 1, member{"a", 3, 0}, member{"b", 1, 0}, member{"c", 9, 0}) // as good as its worst member
	f(least, Pass, 3, member{"a", 3, 0}, member{"b", 0, 0})

	most := Goal{Must: 3, Moonshot: 2}
	f(most, Moonshot, 2, member{"a", 2, 0})
	f(most, Pass, 3, member{"a", 2, 0}, member{"b", 3, 0})
	f(most, Miss, 3.1, member{"a", 3.1, 0}, member{"b", 1, 0})
	most.AtLeast, most.Moonshot = true, 30
	f(most, Moonshot, 30, member{"a", 30, 0})
	f(most, Pass, 29, member{"a", 29, 0})

	reported := Goal{AtLeast: true}
	f(reported, None, 0)
	f(reported, Reported, 0.1, member{"a", 0.1, 0}, member{"b", 5, 0})
}

func TestMissed(t *testing.T) {
	bad := Goal{Must: 2, AtLeast: true}
	bad.Add("a", 1)
	goals := []Goal{{Must: 1}, bad}
	for i := range goals {
		goals[i].Evaluate()
	}
	if len(goals) != 2 || goals[0].Verdict != None || goals[1].Verdict != Miss || !Missed(goals) || Missed(goals[:1]) {
		t.Errorf("%+v", goals)
	}
}

func TestList(t *testing.T) {
	f := func(want string, members ...member) {
		t.Helper()
		var g Goal
		for _, m := range members {
			g.AddCPU(m.name, m.v, m.cpu)
		}
		if got := g.list(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f("")
	f("a 1, b 2.5", member{"b", 2.5, 0}, member{"a", 1, 0})
	f("a 1 (CPU 0.25), b 2.5", member{"b", 2.5, 0}, member{"a", 1, 0.25}, member{"c", 0, 3})
}

func TestAsked(t *testing.T) {
	f := func(want string, g Goal) {
		t.Helper()
		if got := g.Asked(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f("≥ 2", Goal{Must: 2, AtLeast: true, Verdict: Miss})
	f("≤ 3 (0.5)", Goal{Must: 3, Moonshot: 0.5, Verdict: Pass})
	f("≤ 0", Goal{Verdict: Pass})
	f("", Goal{Verdict: Reported})
}
