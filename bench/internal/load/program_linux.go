package load

import (
	"fmt"
	"io"
	"os"
)

// Exit statuses of the benchmark programs.
const (
	exitFailed = 1
	exitUsage  = 2
)

// Main is the main function of a benchmark program: it parses the arguments, runs, and exits with 2
// for arguments it cannot take, with 1 after an error or when run reports that something failed,
// and with 0 otherwise.
func Main[O any](name string, parse func(args []string) (O, error), run func(o O) (failed bool, err error)) {
	os.Exit(status(name, os.Args[1:], os.Stderr, parse, run))
}

func status[O any](name string, args []string, complain io.Writer, parse func(args []string) (O, error), run func(o O) (bool, error)) int {
	o, err := parse(args)
	if err != nil {
		fmt.Fprintln(complain, err)
		return exitUsage
	}
	failed, err := run(o)
	if err != nil {
		fmt.Fprintln(complain, name+":", err)
	}
	if err != nil || failed {
		return exitFailed
	}
	return 0
}

// Faults prints what a run found wrong, or that it passed, unless an error shows it, and reports
// whether something was wrong.
func Faults(faults []string, err error) bool {
	for _, f := range faults {
		fmt.Println("FAIL", f)
	}
	if len(faults) == 0 && err == nil {
		fmt.Println("PASS")
	}
	return len(faults) > 0
}
