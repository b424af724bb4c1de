package fuzz

import (
	"slices"
	"testing"

	"trunkline/handlers/ipc"
)

// TestEveryMethodHasASentence: programs send every method of the table with every field, and the
// model has its rule.
func TestEveryMethodHasASentence(t *testing.T) {
	for _, m := range ipc.Methods() {
		at := slices.IndexFunc(sentences, func(s sentence) bool { return s.service == m.Service && s.method == m.Name })
		if at < 0 {
			t.Errorf("%s.%s has no row in sentences (alphabet_test.go)", m.Service, m.Name)
			continue
		}
		for _, name := range m.Fields {
			has := slices.ContainsFunc(sentences[at].fields, func(f field) bool { return f.name == name })
			if _, exempt := unsent[m.Service+"."+m.Name+"."+name]; has == exempt {
				t.Errorf("%s.%s: field %s is in its sentence: %v, exempt: %v", m.Service, m.Name, name, has, exempt)
			}
		}
		if rulesOf(m.Service)[m.Name] == nil {
			t.Errorf("%s.%s has no rule in the model", m.Service, m.Name)
		}
	}
}

// unsent are fields that programs do not send, with the reason.
var unsent = map[string]string{"kernel.GetSystemStatus.digest": "The model has no digests."}
