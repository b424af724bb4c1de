package node

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestQuestions: each node answers what is asked of it, and of all.
func TestQuestions(t *testing.T) {
	r := cluster(t, nil)
	for id, n := range r.open {
		if err := n.Answer("prod", id, func(q []byte) []byte { return []byte(id + " hears " + string(q)) }); err != nil {
			t.Fatal(err)
		}
	}
	a := r.open["a"]
	for _, id := range []string{"a", "b", "c"} {
		until(t, "node "+id+" answers", func() (string, bool) { // its subject is on its way
			got, err := a.Ask(t.Context(), "prod", id, []byte("one"))
			return string(got), err == nil && string(got) == id+" hears one"
		})
	}
	if _, err := a.Ask(t.Context(), "prod", "d", nil); !errors.Is(err, ErrNoNode) {
		t.Errorf("a node that is not there: %v", err)
	}
	for _, want := range []int{3, 0} {
		until(t, "all answer", func() ([]string, bool) {
			answers, err := a.AskAll(t.Context(), "prod", []byte("all"), want)
			var texts []string
			for _, text := range answers {
				texts = append(texts, string(text))
			}
			slices.Sort(texts)
			return texts, err == nil && slices.Equal(texts, []string{"a hears all", "b hears all", "c hears all"})
		})
	}
	if got, err := a.Ask(t.Context(), "prod", "b", []byte(strings.Repeat("q", maxQuestion))); err != nil || len(got) < maxQuestion {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if answers, err := a.AskAll(t.Context(), "prod", []byte(strings.Repeat("q", maxQuestion+1)), 0); err != nil || len(answers) > 0 {
		t.Errorf("%d answers to a question of %d bytes, %v", len(answers), maxQuestion+1, err)
	}
}
