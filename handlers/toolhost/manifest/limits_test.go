package manifest

import (
	"fmt"
	"strings"
	"testing"
)

// variables is an env of n variables that are size bytes long together, "=" included.
func variables(n, size int) string {
	var b strings.Builder
	for i := range n {
		name := fmt.Sprintf("V%04d", i)
		value := ""
		if i == n-1 {
			value = strings.Repeat("x", size-n*len(name+"="))
		}
		fmt.Fprintf(&b, `,"%s":"%s"`, name, value)
	}
	return b.String()[1:]
}

func TestLimitsOfTheEnvironment(t *testing.T) {
	f := func(env, want string) {
		t.Helper()
		text := run(`{"kind":"process","command":["x"],"env":{` + env + `}}`)
		entries, why := parse([]byte(text), "/")
		if want != "" {
			want = "tools[0].exec.env: " + want
		}
		if why != want {
			t.Errorf("%.60s: %q, want %q", env, why, want)
		}
		if want == "" && len(strings.Join(entries[0].Exec.Env, "")) > maxEnvBytes {
			t.Errorf("%.60s: too large", env)
		}
	}
	f(variables(maxEnv, 6*maxEnv), "")
	f(variables(maxEnv+1, 6*(maxEnv+1)), "more than 256 variables")
	f(variables(1, maxEnvBytes), "")
	f(variables(1, maxEnvBytes+1), "exceeds 64KB limit")
	f(variables(maxEnv, maxEnvBytes), "")
	f(variables(maxEnv, maxEnvBytes+1), "exceeds 64KB limit")
	f(strings.TrimSuffix(strings.Repeat(`"A":"1",`, maxEnv), ","), "")
	f(strings.Repeat(`"A":"1",`, maxEnv)+`"A":"1"`, "more than 256 variables") // each counts, also one that is set again
	f(`"A":"`+strings.Repeat(`\u0041`, maxEnvBytes-2)+`"`, "")                 // what it means counts, not how it is spelled
}
