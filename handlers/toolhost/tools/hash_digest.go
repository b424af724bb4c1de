package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"hash/fnv"
	"io"
	"strings"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

var (
	errMissingSource = errors.New("missing text/path")
	errUnknownAlgo   = errors.New("unknown algo")
)

// hashDigest returns the digest of a text or a file. fnv1a64 is the standard function, unlike the
// quick digest of a state (toolhost §3.6).
func hashDigest(ctx context.Context, e *Env, c *tool.Call) ([]byte, error) {
	in := pick(c.Input, "text", "path", "algo")
	text, isText := in.text("text")
	path, _ := in.text("path")
	if !isText && path == "" {
		return nil, errMissingSource
	}
	algo, given := in.text("algo")
	if !given {
		algo = "sha256"
	}
	var h hash.Hash
	switch algo {
	case "sha256":
		h = sha256.New()
	case "fnv1a64":
		h = fnv.New64a()
	default:
		return nil, errUnknownAlgo
	}
	var from io.Reader = strings.NewReader(text)
	if !isText {
		f, _, err := e.openInput(path)
		if err != nil {
			return nil, inputError(path, err)
		}
		defer f.Close()
		from = f
	}
	n, err := io.CopyBuffer(h, &untilDone{ctx: ctx, from: from}, make([]byte, 64<<10))
	if err != nil {
		return nil, errors.New("read error: " + path)
	}
	return jsonx.Build(nil).Bool("ok", true).Text("algo", algo).
		Text("hex", hex.EncodeToString(h.Sum(nil))).Int("bytes", n).End(), nil
}
