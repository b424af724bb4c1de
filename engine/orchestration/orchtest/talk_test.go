package orchtest

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"trunkline/codec/wire"
	"trunkline/engine/orchestration"
)

// talk is a conversation with one engine: a driver whose surprises fail the test.
type talk struct {
	*driver
	t *testing.T
}

func newTalk(t *testing.T, change ...func(*orchestration.Config)) *talk {
	cfg := roomy()
	for _, f := range change {
		f(&cfg)
	}
	return &talk{drive(cfg), t}
}

// body is the decoded body of a reply that must be one.
func (k *talk) body(got reply) obj {
	k.t.Helper()
	if got.code != wire.OK {
		k.t.Fatalf("refused: %s %q", got.code, got.msg)
	}
	v, rest := unpack(got.body)
	if len(rest) > 0 {
		k.t.Fatalf("%d bytes behind the reply %s", len(rest), show(v))
	}
	return v.(obj)
}

// want checks that the reply is a body that matches.
func (k *talk) want(got reply, want any) {
	k.t.Helper()
	k.body(got)
	if diff := compare(got, answer{want: want}); diff != "" {
		k.t.Errorf("reply%s", diff)
	}
}

// has checks some members of a body, named by their paths.
func (k *talk) has(got reply, want obj) obj {
	k.t.Helper()
	body := k.body(got)
	for path, w := range want {
		v, ok := at(body, path)
		if _, gone := w.(absent); gone {
			if ok {
				k.t.Errorf("%s is %s, want no such member", path, show(v))
			}
		} else if !ok {
			k.t.Errorf("%s is missing, want %s", path, show(w))
		} else if _, diff := match(pack(nil, v), w); diff != "" {
			k.t.Errorf("%s%s", path, diff)
		}
	}
	return body
}

// at finds the member of nested maps that a dotted path names.
func at(v any, path string) (any, bool) {
	for part := range strings.SplitSeq(path, ".") {
		m, ok := v.(obj)
		if !ok {
			return nil, false
		}
		if v, ok = m[part]; !ok {
			return nil, false
		}
	}
	return v, true
}

// refuse checks a refusal with its exact text.
func (k *talk) refuse(got reply, code wire.Code, format string, args ...any) {
	k.t.Helper()
	if want := fmt.Sprintf(format, args...); got.code != code || got.msg != want {
		k.t.Errorf("got %s %q, want %s %q", got.code, got.msg, code, want)
	}
}

// invalid checks a refusal of which only the beginning and some words are fixed.
func (k *talk) invalid(got reply, prefix string, words ...string) {
	k.t.Helper()
	if got.code != wire.InvalidArgument || !strings.HasPrefix(got.msg, prefix) {
		k.t.Errorf("got %s %q, want INVALID_ARGUMENT %q…", got.code, got.msg, prefix)
	}
	for _, w := range words {
		if !strings.Contains(got.msg, w) {
			k.t.Errorf("%q does not name %q", got.msg, w)
		}
	}
}

// start initializes a session that must start.
func (k *talk) start(pid string, config, env any) obj {
	k.t.Helper()
	return k.body(k.initialize(pid, config, env, false))
}

// runs checks that the reply asks to run the agent.
func (k *talk) runs(got reply, agent string) obj {
	k.t.Helper()
	return k.has(got, obj{"kind": "RUN_AGENT", "agent_name": agent, "terminal_reason": "", "termination_message": "", "interrupt_pending": false, "interrupt": nil})
}

// terminates checks that the reply shows the end.
func (k *talk) terminates(got reply, reason, text string) obj {
	k.t.Helper()
	return k.has(got, obj{"kind": "TERMINATE", "agent_name": "", "terminal_reason": reason, "termination_message": text, "interrupt_pending": false, "interrupt": nil})
}

// by is a successful report without anything else.
func by(agent string) report { return report{agent: agent, tokensIn: -1, tokensOut: -1} }

// failing is a failed report.
func failing(agent, text string) report {
	return report{agent: agent, failed: true, err: text, tokensIn: -1, tokensOut: -1}
}

func giving(agent string, output obj) report {
	return report{agent: agent, output: output, tokensIn: -1, tokensOut: -1}
}

// unchanged runs f and checks that the session is as before.
func (k *talk) unchanged(pid string, f func()) {
	k.t.Helper()
	before := k.body(k.state(pid))
	f()
	k.want(k.state(pid), before)
}

// with is m with other members over it; a nil map is made.
func with(m obj, over ...obj) obj {
	m = clone(m).(obj)
	for _, o := range over {
		maps.Copy(m, o)
	}
	return m
}

// without is m without the keys.
func without(m obj, keys ...string) obj {
	m = clone(m).(obj)
	for _, k := range keys {
		delete(m, k)
	}
	return m
}

// line is a pipeline of n stages s1 … sn with agents a1 … an, each going to the next, and bounds
// that do not matter.
func line(n int) obj {
	agents := arr{}
	for i := range n {
		s := obj{"name": fmt.Sprint("s", i+1), "agent": fmt.Sprint("a", i+1)}
		if i+1 < n {
			s["default_next"] = fmt.Sprint("s", i+2)
		}
		agents = append(agents, s)
	}
	return obj{"name": "line", "agents": agents, "max_iterations": 100, "max_llm_calls": 100, "max_agent_hops": 100}
}

// cycle is s1 → s2 → s1 … with agents a1 and a2.
func cycle(over obj) obj {
	return with(obj{
		"name": "cycle", "max_iterations": 100, "max_llm_calls": 100, "max_agent_hops": 100,
		"agents": arr{obj{"name": "s1", "agent": "a1", "default_next": "s2"}, obj{"name": "s2", "agent": "a2", "default_next": "s1"}},
	}, over)
}

// flat and nested are small envelopes; members over nested ones are named without their group.
func flat(id string, over ...obj) obj { return with(obj{"envelope_id": id}, over...) }

func nested(id string, over ...obj) obj {
	e := envelope{true, obj{"identity": obj{"envelope_id": id}, "pipeline": obj{}, "bounds": obj{}}}
	for _, o := range over {
		for key, v := range o {
			e.set(key, clone(v))
		}
	}
	return e.m
}

// bothShapes runs f for each shape, with the path of a known key inside an envelope of it.
func bothShapes(t *testing.T, f func(t *testing.T, make func(id string, over ...obj) obj, path func(key string) string)) {
	t.Run("flat", func(t *testing.T) { f(t, flat, func(key string) string { return key }) })
	t.Run("nested", func(t *testing.T) {
		f(t, nested, func(key string) string {
			if g := groups[key]; g != "" {
				return g + "." + key
			}
			return key
		})
	})
}
