package procgroup

import (
	"fmt"
	"strings"
	"testing"
)

func TestEnviron(t *testing.T) {
	f := func(want string, have map[string]string, extra ...string) {
		t.Helper()
		lookup := func(name string) (string, bool) { v, ok := have[name]; return v, ok }
		if got := strings.Join(Environ(lookup, extra), " "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	f("", nil)
	f("PATH=/bin LANG=", map[string]string{"LANG": "", "PATH": "/bin", "USER": "u", "LD_PRELOAD": "x", "MACHINA_API_TOKEN": "s"})
	f("PATH=/mine HOME=/h A=1", map[string]string{"HOME": "/h", "PATH": "/bin"}, "PATH=/mine", "LD_X=1", "A=0", "A=1", "noequals", "=x",
		"MACHINA_OPERATOR_TOKEN=x", "MACHINA_X_TOKENS=x", "MACHINA_/TOKEN=x")
	f("TOKEN=1 MACHINA_TOK=1 machina_token=1", nil, "TOKEN=1", "MACHINA_TOK=1", "machina_token=1")
}

// TestEnvironOfManyNames: in time that grows with their number, not with its square, which would be
// minutes.
func TestEnvironOfManyNames(t *testing.T) {
	const n = 80_000
	extra := make([]string, 0, 2*n)
	for i := range 2 * n {
		extra = append(extra, fmt.Sprintf("NAME%d=%d", i%n, i))
	}
	env := Environ(func(string) (string, bool) { return "", false }, extra)
	if len(env) != n || env[n-1] != extra[2*n-1] {
		t.Errorf("%d variables, the last %s", len(env), env[len(env)-1])
	}
}
