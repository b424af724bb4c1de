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
	"slices"
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

// maxDepth is how deep a document may nest (exacta §3.1).
const maxDepth = 32

// Canonical appends the canonical JSON of text to dst: keys sorted by code point, no spaces,
// raw UTF-8, numbers as they are spelled (exacta §4.18). text passed jsonx.Strict with a depth of
// at most 32.
func Canonical(dst, text []byte) []byte { return canonicalValue(dst, jsonx.ValueOf(text)) }

// canonicalWithout is Canonical of an object without some of its members.
func canonicalWithout(dst, object []byte, names ...string) []byte {
	return canonicalObject(dst, object, names)
}

func canonicalValue(dst []byte, v jsonx.Value) []byte {
	switch v.Kind {
	case jsonx.String:
		text, _ := v.Text()
		return jsonx.AppendString(dst, text)
	case jsonx.ObjectStart:
		return canonicalObject(dst, v.Raw, nil)
	case jsonx.ArrayStart:
		dst = append(dst, '[')
		list := jsonx.OpenArray(v.Raw)
		for e, ok := list.Next(); ok; e, ok = list.Next() {
			dst = canonicalValue(jsonx.AppendComma(dst), e)
		}
		return append(dst, ']')
	}
	return append(dst, v.Raw...)
}

func canonicalObject(dst, object []byte, without []string) []byte {
	type member struct {
		key   []byte
		value jsonx.Value
	}
	var members []member
	it := jsonx.OpenObject(object)
	for key, v, ok := it.Next(); ok; key, v, ok = it.Next() {
		key = jsonx.Unescape(key)
		if !slices.Contains(without, string(key)) {
			members = append(members, member{key, v})
		}
	}
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	dst = append(dst, '{')
	for _, m := range members {
		dst = jsonx.AppendString(jsonx.AppendComma(dst), m.key)
		dst = canonicalValue(append(dst, ':'), m.value)
	}
	return append(dst, '}')
}

// Sum returns the SHA-256 of b as lower-case hex (exacta §4.18).
func Sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func sumOf(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
