package workers

import (
	"path"
	"strings"
)

// inherited lists what a worker gets of the server's environment (toolhost §4.9).
var inherited = []string{"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "MACHINA_ROOT"}

// Environ returns the environment of a worker: the few variables of the server that lookup knows, then what the manifest adds or
// sets otherwise ("NAME=value"). What loads code into a program (LD_*) and what is a secret of the server (MACHINA_*TOKEN*) is
// left out wherever it comes from.
func Environ(lookup func(name string) (value string, ok bool), extra []string) []string {
	env := make([]string, 0, len(inherited)+len(extra))
	at := make(map[string]int, cap(env)) // by name: a manifest may have many
	for _, name := range inherited {
		if value, ok := lookup(name); ok {
			at[name] = len(env)
			env = append(env, name+"="+value)
		}
	}
	for _, e := range extra {
		name, _, ok := strings.Cut(e, "=")
		if !ok || forbidden(name) {
			continue
		}
		if i, have := at[name]; have {
			env[i] = e
			continue
		}
		at[name] = len(env)
		env = append(env, e)
	}
	return env
}

func forbidden(name string) bool {
	return Secret(name) || name == "" || strings.HasPrefix(name, "LD_")
}

// Secret reports whether an environment variable of that name is a secret of the tool server, which no worker is given.
func Secret(name string) bool {
	token, _ := path.Match("MACHINA_*TOKEN*", strings.ReplaceAll(name, "/", "_"))
	return token
}

// variable returns the value of a variable in an environment, "" if it is not there.
func variable(env []string, name string) string {
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}
