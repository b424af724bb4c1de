// Package clientcontext keeps named servers for the client verbs: where one listens, and with what
// it is trusted. There is a file for each of them in the user's configuration directory, which only
// the user can read:
//
//	trunkline/contexts/NAME.json  one context
//	trunkline/context             the name of the current one
//
// A directory can name a context too, in a file .trunkline-context: that of the working directory,
// or of the nearest directory above it, is chosen before the current one. It holds a name only, so
// a directory of another user cannot lead to a server that the user has not named.
package clientcontext

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"trunkline/engine/smallfile"
)

// Bounds of contexts.
const (
	// maxContexts is how many there may be.
	maxContexts = 1000
	// maxFile is the size of the largest file of a context, in bytes.
	maxFile = 16 << 10
)

// Env names the variable that chooses a context.
const Env = "TRUNKLINE_CONTEXT"

// LocalFile is the file by which a directory chooses a context.
const LocalFile = ".trunkline-context"

// Errors of names.
var (
	// ErrNotFound means that there is no context of a name.
	ErrNotFound = errors.New("no such context")
	// ErrExists means that there is one.
	ErrExists = errors.New("there is such a context")
	// ErrName means that a text cannot be the name of a context.
	ErrName = errors.New("a name has 1 to 64 letters, digits, dots, dashes and underscores, and begins with a letter or a digit")
	// errFull means that there are maxContexts.
	errFull = fmt.Errorf("there are %d contexts", maxContexts)
)

// Context is a named server. What is "" is not named. Paths of files are absolute.
type Context struct {
	// Addr is where kernel IPC listens: host:port or unix:///path.
	Addr string `json:"addr,omitempty"`
	// Admin is the admin listener, host:port, ConsoleTokenFile a file with the token of operators
	// of its web console.
	Admin            string `json:"admin,omitempty"`
	ConsoleTokenFile string `json:"console_token_file,omitempty"`
	// TLSCA, TLSCert and TLSKey are PEM files: how kernel IPC is trusted, and what is shown to it.
	TLSCA   string `json:"tls_ca,omitempty"`
	TLSCert string `json:"tls_cert,omitempty"`
	TLSKey  string `json:"tls_key,omitempty"`
	// ThreadsURL is the server of agent threads, TokenFile a file with the token for it.
	ThreadsURL string `json:"threads_url,omitempty"`
	TokenFile  string `json:"token_file,omitempty"`
	// ExactaAddr is the server of projects, ExactaTokenFile a file with the token for it.
	ExactaAddr      string `json:"exacta_addr,omitempty"`
	ExactaTokenFile string `json:"exacta_token_file,omitempty"`
}

// Chosen is the context in force; without one Name is "".
type Chosen struct {
	Context
	Name string
	// By is what chose it: "env TRUNKLINE_CONTEXT", "file PATH" or "current".
	By string
}

// Store is the directory of the contexts.
type Store struct{ dir string }

// Open returns the contexts below a configuration directory, "" for the user's own. Nothing is made
// before the first Put.
func Open(dir string) (*Store, error) {
	if dir == "" {
		var err error
		if dir, err = os.UserConfigDir(); err != nil {
			return nil, fmt.Errorf("cannot find the user's configuration directory: %w", err)
		}
	}
	return &Store{dir: filepath.Join(dir, "trunkline")}, nil
}

// maxName is the length of the longest name.
const maxName = 64

// isName reports whether a text can be a name, and so a part of a file's name.
func isName(text string) bool {
	for i, r := range text {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		case i > 0 && strings.ContainsRune("._-", r):
		default:
			return false
		}
	}
	return text != "" && len(text) <= maxName
}

func (s *Store) file(name string) (string, error) {
	if !isName(name) {
		return "", fmt.Errorf("cannot use the name %q: %w", name, ErrName)
	}
	return filepath.Join(s.dir, "contexts", name+".json"), nil
}

func (s *Store) currentFile() string { return filepath.Join(s.dir, "context") }

// Get returns the context of a name; the error is ErrNotFound if there is none.
func (s *Store) Get(name string) (c Context, err error) {
	path, err := s.file(name)
	if err != nil {
		return c, err
	}
	text, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("cannot use the context %q: %w", name, ErrNotFound)
	}
	if err == nil {
		in := json.NewDecoder(strings.NewReader(text))
		in.DisallowUnknownFields()
		err = in.Decode(&c)
	}
	if err != nil {
		return Context{}, fmt.Errorf("cannot read the context %q: %s: %w", name, path, err)
	}
	return c, nil
}

// Put stores a context. The error is ErrExists if there is one of that name, unless replace is set.
func (s *Store) Put(name string, c Context, replace bool) error {
	path, err := s.file(name)
	if err != nil {
		return err
	}
	names, err := s.Names()
	switch {
	case err != nil:
		return err
	case slices.Contains(names, name) && !replace:
		return fmt.Errorf("cannot add the context %q: %w", name, ErrExists)
	case !slices.Contains(names, name) && len(names) >= maxContexts:
		return fmt.Errorf("cannot add the context %q: %w", name, errFull)
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return write(path, append(text, '\n'))
}

// Names lists the contexts in the order of their names.
func (s *Store) Names() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "contexts"))
	if err != nil && !notThere(err) {
		return nil, fmt.Errorf("cannot list the contexts: %w", err)
	}
	names := []string{}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && isName(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// Remove removes a context, and has none be the current one if it was that.
func (s *Store) Remove(name string) error {
	path, err := s.file(name)
	if err != nil {
		return err
	}
	err = os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the context %q: %w", name, ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("cannot remove the context %q: %w", name, err)
	}
	if current, err := s.Current(); err == nil && current == name {
		return s.Use("")
	}
	return nil
}

// Current returns the name of the current context, "" if there is none.
func (s *Store) Current() (string, error) {
	text, err := read(s.currentFile())
	if notThere(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the current context: %w", err)
	}
	return strings.TrimSpace(text), nil
}

// Use makes a context the current one, "" none.
func (s *Store) Use(name string) error {
	if name == "" {
		if err := os.Remove(s.currentFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot use no context: %w", err)
		}
		return nil
	}
	if _, err := s.Get(name); err != nil {
		return err
	}
	return write(s.currentFile(), []byte(name+"\n"))
}

// UseIn has a directory choose a context.
func (s *Store) UseIn(dir, name string) error {
	if _, err := s.Get(name); err != nil {
		return err
	}
	return write(filepath.Join(dir, LocalFile), []byte(name+"\n"))
}

// Choose returns the context in force: named, which is that of the environment, else that of dir or
// the nearest directory above it with a LocalFile, else the current one. A name without a context
// is an error that is ErrNotFound.
func (s *Store) Choose(named, dir string) (c Chosen, err error) {
	if c.Name, c.By = named, "env "+Env; named == "" {
		if c.Name, c.By, err = local(dir); err != nil {
			return Chosen{}, err
		}
	}
	if c.Name == "" {
		c.By = "current"
		if c.Name, err = s.Current(); err != nil {
			return Chosen{}, err
		}
	}
	if c.Name == "" {
		return Chosen{}, nil
	}
	if c.Context, err = s.Get(c.Name); err != nil {
		return Chosen{}, fmt.Errorf("%w (chosen by %s)", err, c.By)
	}
	return c, nil
}

// local finds the nearest LocalFile.
func local(dir string) (name, by string, err error) {
	for dir != "" {
		path := filepath.Join(dir, LocalFile)
		text, err := read(path)
		if err == nil {
			return strings.TrimSpace(text), "file " + path, nil
		}
		if !notThere(err) {
			return "", "", fmt.Errorf("cannot read %s: %w", path, err)
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return "", "", nil
}

// notThere reports whether a file that chooses a context is not there for this user. A program
// under another user than that of its environment has no contexts.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR)
}

var errLong = fmt.Errorf("it is longer than %d bytes", maxFile)

func read(path string) (string, error) {
	text, err := smallfile.Read(path)
	if err == nil && len(text) > maxFile {
		err = errLong
	}
	return string(text), err
}

// write replaces a file as a whole. Only its owner can read it.
func write(path string, text []byte) (err error) {
	if len(text) > maxFile {
		return fmt.Errorf("cannot write %s: %w", path, errLong)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".context-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
