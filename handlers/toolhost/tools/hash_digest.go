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
	var from io.Reader = strings.NewReader(text)
	if !isText {
		f, _, err := e.openInput(path)
		if err != nil {
			return tool.Fail(readFailure(path, err))
		}
		defer f.Close()
		from = f
	}
	n, err := io.CopyBuffer(h, &untilDone{ctx: ctx, from: from}, make([]byte, 64<<10))
	if err != nil {
		return failed(ctx, "read error: "+path)
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
