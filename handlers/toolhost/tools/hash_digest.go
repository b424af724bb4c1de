package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"hash/fnv"
	"io"
	"strconv"
	"strings"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

// hashDigest returns the digest of a text or a file.
func hashDigest(e *Env) Builtin {
	return builtin(tool.Descriptor{
		AID:           "AID.HASH.DIGEST.v1",
		Name:          "hash_digest",
		Deterministic: true,
		Tags:          []string{"tag.meta", "tag.hash"},
		SideEffects:   []string{"filesystem_read"},
	}, func(ctx context.Context, c *tool.Call) tool.Result { return runHashDigest(ctx, e, c) })
}

// newHash returns the hash function that algo names, nil if none does. fnv1a64 is the standard function, unlike the quick digest
// of a state (toolhost §3.6).
func newHash(algo string) hash.Hash {
	switch algo {
	case "sha256":
		return sha256.New()
	case "fnv1a64":
		return fnv.New64a()
	}
	return nil
}

func runHashDigest(ctx context.Context, e *Env, c *tool.Call) tool.Result {
	in := pick(c.Input, "text", "path", "algo")
	text, isText := in.text("text")
	path, _ := in.text("path")
	if !isText && path == "" {
		return tool.Fail("missing text/path")
	}
	algo, given := in.text("algo")
	if !given {
		algo = "sha256"
	}
	h := newHash(algo)
	if h == nil {
		return tool.Fail("unknown algo")
	}
	var n int64
	if isText {
		n, _ = io.Copy(h, strings.NewReader(text)) // a hash takes everything
	} else {
		var why string
		if n, why = e.hashFile(ctx, h, path); why != "" {
			return tool.Fail(why)
		}
	}
	return tool.Result{Output: appendDigest(nil, algo, h, n)}
}

func appendDigest(dst []byte, algo string, h hash.Hash, n int64) []byte {
	dst = append(dst, `{"ok":true,"algo":`...)
	dst = jsonx.AppendString(dst, algo)
	dst = append(dst, `,"hex":"`...)
	dst = hex.AppendEncode(dst, h.Sum(nil))
	dst = append(dst, `","bytes":`...)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, '}')
}

// hashFile puts the file path through h, whatever its size, and returns its bytes, or why it cannot.
func (e *Env) hashFile(ctx context.Context, h hash.Hash, path string) (n int64, why string) {
	f, _, err := e.openInput(path)
	if err != nil {
		return 0, readFailure(path, err)
	}
	defer f.Close()
	n, err = io.CopyBuffer(h, untilDone{ctx, f}, make([]byte, 64<<10))
	if ctx.Err() != nil {
		return 0, canceled(ctx).ErrorText()
	}
	if err != nil {
		return 0, "read error: " + path
	}
	return n, ""
}

// untilDone reads until ctx is done.
type untilDone struct {
	ctx  context.Context
	from io.Reader
}

// Read reads from the file unless ctx is done.
func (u untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.from.Read(p)
}

// untilDoneAt is untilDone for reading anywhere.
type untilDoneAt struct {
	ctx  context.Context
	from io.ReaderAt
}

// ReadAt reads from the file unless ctx is done.
func (u untilDoneAt) ReadAt(p []byte, offset int64) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.from.ReadAt(p, offset)
}
