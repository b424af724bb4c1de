package selector

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// d describes a tool by its AID without the "AID." and ".v1" around it, and its tags without
// "tag.".
func d(aid string, tags ...string) tool.Descriptor {
	t := tool.Descriptor{AID: "AID." + aid + ".v1", Name: strings.ToLower(aid)}
	for _, tag := range tags {
		t.Tags = append(t.Tags, "tag."+tag)
	}
	return t
}

// tools is what most tests register.
func tools() []tool.Descriptor {
	return []tool.Descriptor{d("ERROR_SCAN", "log", "scan", "error"), d("NOOP", "meta")}
}

// state has the slots of the digits in set; DS6 has the given stage, if there is one.
func state(set, stage string) *sessionstate.State {
	var s sessionstate.State
	for n := range sessionstate.Slots {
		if strings.Contains(set, string(rune('0'+n))) {
			s.Set(n, sessionstate.Artifact{Type: "t"})
		}
	}
	if stage != "" {
		s.Set(6, sessionstate.Artifact{Content: `{"stage":"` + stage + `"}`})
	}
	return &s
}

// open opens the run of a request line with the tools; it must succeed.
func open(t *testing.T, cfg *Config, line string) *Run {
	t.Helper()
	r, why := ReadOpen([]byte(line))
	if why != "" {
		t.Fatalf("%s: %s", line, why)
	}
	run, why := Open(cfg, r)
	if why != "" {
		t.Fatalf("%s: %s", line, why)
	}
	return run
}
