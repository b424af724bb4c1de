package supervisor

import (
	"os"
	"path/filepath"
	"strings"
)

const (
	// maxLogBytes bounds the output that is kept of the commands of one job.
	maxLogBytes = 1 << 20
	// maxLogs bounds the log files that are kept: the newest ones.
	maxLogs   = 1000
	logSuffix = ".log"
)

// runLog is the log file of a job. It drops what exceeds its cap, so that a command never waits for
// its output to be read.
type runLog struct {
	f    *os.File
	left int64
}

// openLog opens the log of a job: a further command of the same job appends to it.
func openLog(dir, id string) (*runLog, error) {
	removeOldLogs(dir)
	f, err := os.OpenFile(filepath.Join(dir, id+logSuffix), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &runLog{f, maxLogBytes - info.Size()}, nil
}

// removeOldLogs makes room for one more log. Identifiers of triggers begin with their time, so that
// names are in the order of age.
func removeOldLogs(dir string) {
	entries, _ := os.ReadDir(dir) // without it the next step fails
	var logs []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), logSuffix) {
			logs = append(logs, e.Name())
		}
	}
	for len(logs) >= maxLogs {
		_ = os.Remove(filepath.Join(dir, logs[0])) // another command may have removed it
		logs = logs[1:]
	}
}

// Write never fails: a full disk must not end a command.
func (l *runLog) Write(b []byte) (int, error) {
	if l.left > 0 {
		n, _ := l.f.Write(b[:min(int64(len(b)), l.left)])
		if l.left -= int64(n); l.left == 0 {
			_, _ = l.f.WriteString("\n[what follows is not kept]\n")
		}
	}
	return len(b), nil
}

// note adds a line of the server.
func (l *runLog) note(text string) { _, _ = l.Write([]byte("[" + text + "]\n")) }

func (l *runLog) close() { _ = l.f.Close() }
