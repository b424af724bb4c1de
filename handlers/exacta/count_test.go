package exacta

import (
	"os/exec"
	"strings"
	"testing"
)

// TestCounter counts errors and warnings by the rules of exacta §4.13.
func TestCounter(t *testing.T) {
	f := func(tool, output string, errors, warnings int) {
		t.Helper()
		for piece := 1; piece <= len(output)+1; piece += 7 {
			c := newCounter(tool)
			for rest := output; rest != ""; {
				n := min(piece, len(rest))
				_, _ = c.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			c.end()
			if c.errors != errors || c.warnings != warnings {
				t.Errorf("%s: %q has %d errors and %d warnings, want %d and %d", tool, output, c.errors, c.warnings, errors, warnings)
			}
		}
	}
	f("make", "", 0, 0)
	f("make", "a.c:1:1: warning: w\na.c:2:2: error: e\n  a.c:2:2: error: e\t\nmake: *** [all] Error 1\n", 1, 1)
	f("make", "a.c:1: fatal error: x\nERROR: y\nerrors: z\n", 2, 0)
	f("go", "# x\n./main.go:3:2: undefined: y\nmain.go:4: z\nmain.go: 5\n", 2, 0)
	f("make", "main.go:4:1: z\n", 0, 0)
	f("npm", "TypeError: x\nError: y\nnpm error code 1\n", 2, 0)
	f("cargo", "error[E0001]: x\nwarning: unused\nwarning: `x` (bin) generated 1 warning\nerror: could not compile `x`\nerror: aborting due to 1 previous error\nFor more information about this error: x\n", 1, 1)
	f("dotnet", "a.cs(1,2): error CS0103: x [/p.csproj]\na.cs(1,2): warning CS0168: y\r\n", 1, 1)
	f("make", "\x1b[31merror\x1b[0m: red\nlast error: without an end", 2, 0)
	c := newCounter("make")
	_, _ = c.Write([]byte(strings.Repeat("é", 3*tailSize)))
	if tail := c.tail(); len(tail) > tailSize || strings.Trim(tail, "é") != "" {
		t.Errorf("a tail of %d bytes", len(tail))
	}
}

// TestTailWithoutRoot: no absolute path of a project is in an event (exacta §6.4).
func TestTailWithoutRoot(t *testing.T) {
	tail := func(root string) string {
		c := newCounter("make")
		c.root = []byte(root)
		for range tailSize / 8 {
			_, _ = c.Write([]byte("in " + root + "/x\n"))
		}
		return c.tail()
	}
	if short, long := tail("/r"), tail("/a/long/root"); short != long || !strings.HasSuffix(short, "in {PROJECT_ROOT}/x\n") {
		t.Errorf("%q\n%q", short, long)
	}
}

// TestMissingPackages are named where a tool leaves no doubt.
func TestMissingPackages(t *testing.T) {
	f := func(tool, output, want string) {
		t.Helper()
		c := newCounter(tool)
		_, _ = c.Write([]byte(output + "\n"))
		if c.missing != want {
			t.Errorf("%s: %q misses %q, want %q", tool, output, c.missing, want)
		}
	}
	const ofGo = "main.go:3:8: no required module provides package example.com/a/b; to add it:\n\tgo get example.com/a/b"
	f("go", ofGo, "example.com/a/b")
	f("go", "main.go:3:8: no required module provides package example.com/a/b: go.mod file not found", "example.com/a/b")
	f("go", ofGo+"\nx.go:1:1: no required module provides package example.com/c; to add it:", "example.com/a/b")
	f("go", "main.go:3:8: package nothing is not in std", "")
	f("make", ofGo, "")
	f("npm", "Error: Cannot find module 'left-pad'", "left-pad")
	f("npm", "Error: Cannot find module '@scope/left.pad'", "@scope/left.pad")
	f("npm", "Error: Cannot find module './left-pad'", "")
	f("npm", "Error: Cannot find module '/p/build.js'", "")
	f("npm", "a.ts(1,2): error TS2307: Cannot find module 'src/x' or its corresponding type declarations.", "")
	f("cargo", "error: no matching package named `left_pad` found", "left_pad")
	f("cargo", "error: no matching package named `` found", "")
}

// TestABuildWithoutAPackage has the failure of the real tool.
func TestABuildWithoutAPackage(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("go is not installed")
	}
	s, dir := newServer(t), newRoot(t)
	files(t, dir, map[string]string{"main.go": "package main\n\nimport _ \"example.com/a/b\"\n\nfunc main() {}\n"})
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`), ask(2, "Build", ""))
	if got := p.until(2); !strings.Contains(got, `"code":"BLD-003"`) || !strings.Contains(got, `"A dependency is missing: example.com/a/b."`) || !strings.Contains(got, `"exit_code":1`) {
		t.Error(got)
	}
}
