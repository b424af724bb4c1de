package main

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"trunkline/fuzz/kit"
)

// TestMain makes this test binary the program itself when a script calls "trunkline", or one of the
// names that clients of the envelope exchange look for.
func TestMain(m *testing.M) {
	if os.Getenv("XDG_CONFIG_HOME") == "" {
		dir := cmp.Or(os.Getenv("WORK"), os.TempDir())                // that of a script, which has an environment of its own
		os.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "no-config")) // the contexts of who runs the tests are not theirs
	}
	kit.Signals()
	testscript.Main(m, map[string]func(){
		"trunkline":     main,
		"go-envelope":   main,
		"go-coreengine": main,
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":     cmdCode,
			"waitline": cmdWaitLine,
			"cert":     cmdCert,
			"send":     cmdSend,
		},
	})
}
