package workers

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/handlers/toolhost/tool"
)

// through has the tool of a rig be started through env, which sets a variable for it.
func through(c *ProcessConfig) {
	c.Wrapper = Wrapper{Command: []string{"env", "WRAPPED=a b"}, Path: os.Getenv("PATH")}
}

// TestWrapper: every program is started through it, the ones that have a hash as well.
func TestWrapper(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip(err)
	}
	sum := sha256.Sum256(self)
	for _, hash := range []string{"", hex.EncodeToString(sum[:])} {
		r := newRig(t, func(c *ProcessConfig) {
			through(c)
			c.SHA256, c.Env = hash, append(c.Env, "PATH=/nowhere") // of the tool, not of the wrapper
		}, "env")
		if got := r.call(10*time.Second, "{}", nil); got.Status() != tool.OK || !strings.Contains(string(got.Output), "WRAPPED=a b") {
			t.Errorf("hash %q: %s", hash, short(got))
		}
	}
	r := newRig(t, func(c *ProcessConfig) { through(c); c.Oneshot = true }, "oneshot", "print", `{"status":"OK"}`, "3")
	r.want(`TOOL_ERROR  "toolhost exit 3: words" crash "words"`)
	detail := "hash mismatch"
	r = newRig(t, func(c *ProcessConfig) { through(c); c.SHA256 = strings.Repeat("0", 64) }, "env")
	r.want(`TOOL_ERROR  "toolhost launch failed: ` + detail + `" not_found "` + detail + `"`)
}

// TestWrapperChecksWhatRuns: a program that is another one by the time that the wrapper starts it
// does not answer.
func TestWrapperChecksWhatRuns(t *testing.T) {
	dir := t.TempDir()
	file, other, wrapper := filepath.Join(dir, "tool"), filepath.Join(dir, "other"), filepath.Join(dir, "wrapper")
	sum := put(t, file, "#!/bin/sh\nread x; echo '"+strings.TrimSpace(okReply)+"'\n")
	put(t, other, "#!/bin/sh\nread x; echo '"+strings.TrimSpace(okReply)+"'\n# another\n")
	put(t, wrapper, "#!/bin/sh\nmv "+other+" "+file+"\nexec \"$@\"\n")
	r := newRig(t, func(c *ProcessConfig) {
		c.Command, c.SHA256, c.Wrapper = []string{file}, sum, Wrapper{Command: []string{wrapper}}
	})
	r.want(`TOOL_ERROR  "toolhost launch failed: hash mismatch" not_found "hash mismatch"`)
}

func TestWrapperThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "here"), "#!/bin/sh\nexec \"$@\"\n")
	for _, c := range []struct{ name, path, why string }{
		{"here", "/nowhere", "executable not found in PATH: here"},
		{"here", "", "executable not found in PATH: here"},
		{plain, "", "exec " + plain + ": permission denied"},
		{plain + "er", "", "stat " + plain + "er: no such file or directory"},
		{"here", dir, ""},
	} {
		r := newRig(t, func(p *ProcessConfig) {
			p.Wrapper = Wrapper{Command: []string{c.name}, Path: c.path}
			p.Env = append(p.Env, "PATH="+dir+":/usr/bin:/bin")
		}, "good")
		if c.why == "" {
			r.want(`OK {"n":1} ""`)
			if err := r.Check(t.Context()); err != nil {
				t.Error(err)
			}
			continue
		}
		why := "cannot use the wrapper: " + c.why
		r.want(`TOOL_ERROR  "toolhost launch failed: ` + why + `" not_found "` + why + `"`)
		if err := r.Check(t.Context()); err == nil || err.Error() != why {
			t.Errorf("%v, want %s", err, why)
		}
		if n := r.started(); n != 0 {
			t.Errorf("%d processes were started", n)
		}
	}
}
