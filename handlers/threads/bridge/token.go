package bridge

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// maxTokenFile bounds a file with a token: the longest token, and space around it.
const maxTokenFile = 16 << 10

// TokenFile returns the token in a file. The file is read again when it has changed. Any goroutine
// may call what it returns.
func TokenFile(name string) func() (string, error) {
	f := &tokenFile{name: name}
	return f.token
}

// tokenFile is a file with a token, as it was read last.
type tokenFile struct {
	name string

	mu      sync.Mutex
	text    string
	changed time.Time
	size    int64
}

func (f *tokenFile) token() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.name)
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	if f.text != "" && info.ModTime().Equal(f.changed) && info.Size() == f.size {
		return f.text, nil
	}
	file, err := os.Open(f.name)
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxTokenFile))
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	f.text, f.changed, f.size = strings.TrimSpace(string(text)), info.ModTime(), info.Size()
	return f.text, nil
}
