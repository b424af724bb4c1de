package workspace

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"trunkline/codec/jsonx"
)

// The least and the most bytes of the key of an installation, without white space around it.
const (
	minKey = 32
	maxKey = 4096
)

// processKey is the key of a program that was given none: what it writes is proven to itself only.
var processKey = sync.OnceValue(newKey)

func newKey() []byte { return []byte(rand.Text() + rand.Text()) } // 26 letters with 130 bits each

// LoadKey returns the key of this installation, which proves what the server wrote into projects.
// It lies outside of them, in a file with the mode 0600 that is made where it is missing.
func LoadKey(path string) ([]byte, error) {
	if path == "" {
		return nil, errors.New("no file is named")
	}
	key, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeKey(path); err == nil {
			key, err = readKey(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the key %q: %w", path, err)
	}
	return key, nil
}

// makeKey makes a complete file, and one for all programs that start together.
func makeKey(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".key-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it has its name by then
	_, err = f.Write(append(newKey(), '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func readKey(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Mode().Perm()&0o077 != 0 {
		return nil, errors.New("want a regular file that only its owner can read (mode 0600)")
	}
	key, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if key = bytes.TrimSpace(key); err != nil || len(key) < minKey || len(key) > maxKey {
		return nil, fmt.Errorf("want %d to %d bytes", minKey, maxKey)
	}
	return key, nil
}

// proof returns the MAC of a file of .exacta, in hex: of its name, the root of the project, and the
// canonical JSON of what it has beside mac and checksum. The object passed jsonx.Strict.
func (p *Project) proof(name string, object []byte) string {
	h := hmac.New(sha256.New, p.opts.Key)
	h.Write([]byte(name + "\x00" + p.root + "\x00"))
	h.Write(canonicalWithout(nil, jsonx.ValueOf(object).Raw, "mac", "checksum"))
	return hex.EncodeToString(h.Sum(nil))
}

// sign appends the MAC to a file of .exacta that is an object.
func (p *Project) sign(name string, doc []byte) []byte {
	body, ok := bytes.CutSuffix(bytes.TrimSpace(doc), []byte("}"))
	if !ok {
		return doc
	}
	return append(jsonx.Builder(bytes.Clone(body)).Text("mac", p.proof(name, doc)).End(), '\n')
}

// proves reports whether a file of .exacta, which passed jsonx.Strict, was written by this
// installation for this root, and by nothing else.
func (p *Project) proves(name string, text []byte) bool {
	var mac [1]jsonx.Value
	jsonx.Pick(text, []string{"mac"}, mac[:])
	got, ok := mac[0].Text()
	return ok && hmac.Equal(got, []byte(p.proof(name, text)))
}

// ProvesPlan reports whether a document that LoadPlan returned, and that is a plan, was written by
// this installation for this root.
func (p *Project) ProvesPlan(id string, doc []byte) bool { return p.proves("plan/"+id, doc) }
