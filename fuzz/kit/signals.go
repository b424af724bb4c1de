package kit

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Signals gives the programs that tests start the default action of SIGHUP and SIGINT, which
// nohup(1) and shells without job control have ignored. A child inherits what its parent ignores,
// and not what its parent catches. It is for TestMain; a test binary that plays a program is left
// as it is.
func Signals() {
	if !strings.HasSuffix(os.Args[0], ".test") {
		return
	}
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
