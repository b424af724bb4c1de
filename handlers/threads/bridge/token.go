package bridge

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"trunkline/engine/smallfile"
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
	text, err := smallfile.Read(f.name)
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	if len(text) > maxTokenFile {
		return "", fmt.Errorf("cannot read the token: %s is larger than %d bytes", f.name, maxTokenFile)
	}
	f.text, f.changed, f.size = strings.TrimSpace(string(text)), info.ModTime(), info.Size()
	return f.text, nil
}
