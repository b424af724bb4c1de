package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes this test binary the program itself when a script calls "trunkline", or one of the
// names that clients of the envelope exchange look for.
func TestMain(m *testing.M) {
	if os.Getenv("XDG_CONFIG_HOME") == "" {
		os.Setenv("XDG_CONFIG_HOME", "/no-config") // the contexts of who runs the tests are not theirs
	}
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
