package envelope

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// goalsOf runs op on an envelope with some members and shows the three lists.
func goalsOf(t *testing.T, members string, op func(g *goals, e *Env)) string {
	t.Helper()
	e := decoded(t, JSON, []byte(`{"envelope_id":"e"`+members+`}`))
	var g goals
	g.normalise(e)
	if op != nil {
		op(&g, e)
	}
	g.store(e)
	return fmt.Sprintf("%s %s %s", e.strings(AllGoals, nil), e.strings(RemainingGoals, nil), e.shown(GoalCompletionStatus))
}

func TestGoalDefaults(t *testing.T) {
	f := func(members, want string) {
		t.Helper()
		if got := goalsOf(t, members, nil); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", members, got, want)
		}
	}
	f(``, `[] [] {}`)
	f(`,"all_goals":["a","b"]`, `[a b] [a b] {"a":"pending","b":"pending"}`)
	f(`,"all_goals":["a","b"],"remaining_goals":["b"]`, `[a b] [b] {"a":"satisfied","b":"pending"}`)
	f(`,"all_goals":["a","b"],"remaining_goals":[]`, `[a b] [] {"a":"satisfied","b":"satisfied"}`)
	f(`,"all_goals":["a","b"],"goal_completion_status":{"a":"complete"}`, `[a b] [b] {"a":"complete","b":"pending"}`)
	f(`,"all_goals":["a"],"goal_completion_status":{"a":"satisfied","x":"y"}`, `[a] [] {"a":"satisfied","x":"y"}`)
	f(`,"all_goals":["a"],"goal_completion_status":{"a":"odd"}`, `[a] [a] {"a":"odd"}`)
	f(`,"all_goals":["a","a"]`, `[a a] [a a] {"a":"pending"}`)
	f(`,"remaining_goals":["a"]`, `[] [a] {}`)
}

func TestGoalsAreAddedAndReached(t *testing.T) {
	add := func(list string) func(g *goals, e *Env) {
		return func(g *goals, e *Env) { g.add(e, valueOf(JSON, []byte(list))) }
	}
	f := func(members string, op func(g *goals, e *Env), want string) {
		t.Helper()
		if got := goalsOf(t, members, op); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", members, got, want)
		}
	}
	f(``, add(`["a",1,"b\"","a"]`), `[a b"] [a b"] {"a":"pending","b\"":"pending"}`)
	f(`,"all_goals":["a"],"remaining_goals":[]`, add(`["a","c"]`), `[a c] [c] {"a":"satisfied","c":"pending"}`)
	satisfy := func(names ...string) func(g *goals, e *Env) {
		var list [][]byte
		for _, name := range names {
			list = append(list, []byte(name))
		}
		return func(g *goals, e *Env) { g.satisfy(e, list) }
	}
	f(`,"all_goals":["a","b","c"]`, satisfy("c", "a", "x"), `[a b c] [b] {"a":"satisfied","b":"pending","c":"satisfied","x":"satisfied"}`)
	f(`,"all_goals":["a"],"goal_completion_status":{"\u0061":"pending"}`, satisfy("a"), `[a] [] {"\u0061":"satisfied"}`)
	f(`,"all_goals":["a"]`, satisfy(), `[a] [a] {"a":"pending"}`)
}

// TestGoalsAgainstAModel runs random operations against lists and a map.
func TestGoalsAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := decoded(t, JSON, []byte(`{"envelope_id":"e"}`))
		var g goals
		var all, remaining []string
		status := map[string]string{}
		for range rapid.IntRange(1, 6).Draw(t, "operations") {
			names := rapid.SliceOfN(rapid.StringMatching(`[a-e]`), 0, 4).Draw(t, "names")
			var list [][]byte
			text := "["
			for i, name := range names {
				list = append(list, []byte(name))
				if i > 0 {
					text += ","
				}
				text += `"` + name + `"`
			}
			if rapid.Bool().Draw(t, "add") {
				g.add(e, valueOf(JSON, []byte(text+"]")))
				for _, name := range names {
					if !slices.Contains(all, name) {
						all, remaining, status[name] = append(all, name), append(remaining, name), pending
					}
				}
				continue
			}
			g.satisfy(e, list)
			for _, name := range names {
				status[name] = satisfied
				if at := slices.Index(remaining, name); at >= 0 {
					remaining = append(remaining[:at:at], remaining[at+1:]...)
				}
			}
		}
		g.store(e)
		if got, want := fmt.Sprintf("%s%s", e.strings(AllGoals, nil), e.strings(RemainingGoals, nil)), fmt.Sprintf("%s%s", all, remaining); got != want {
			t.Fatalf("goals %s, want %s", got, want)
		}
		for name, want := range status {
			if s, _ := e.Str(e.Get(e.Value(GoalCompletionStatus).Raw, name)); string(s) != want {
				t.Fatalf("status of %s is %s, want %s", name, s, want)
			}
		}
	})
}
