package workers

import "testing"

// TestPlain: a program that is no tool gets the input as its line, and answers any object.
func TestPlain(t *testing.T) {
	f := func(script string, want ...string) {
		t.Helper()
		r := newRig(t, func(c *ProcessConfig) { c.Plain, c.Command = true, []string{"/bin/sh", "-c", script} })
		for _, w := range want {
			r.want(w)
		}
	}
	f(`while read -r line; do printf '{"got":%s}\n' "$line"; done`, `OK {"got":{}} ""`, `OK {"got":{}} ""`)
	const garbage = `TOOL_ERROR  "toolhost invalid response JSON" parse_error ""`
	f(`while read -r line; do echo '[1]'; done`, garbage, garbage)
	f(`read -r line; echo '{"a":1'`, garbage)
}
