package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"hash/fnv"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

const (
	readDefault = 256 << 10
	// readMax is the most: as base64 in the output and again in DS0 it fits a reply (D31).
	readMax = 360 << 10
	// replyFrame is more than a reply has beside the output and DS0's content.
	replyFrame = 4 << 10
)

var errMissingPath = errors.New("missing path")

func fileRead(ctx context.Context, e *Env, c *tool.Call) ([]byte, error) {
	in := pick(c.Input, "path", "max_bytes", "offset")
	path, _ := in.text("path")
	if path == "" {
		return nil, errMissingPath
	}
	f, resolved, err := e.openInput(path)
	if err != nil {
		return nil, inputError(path, err)
	}
	defer f.Close()
	size := min(in.positive("max_bytes", readMax, readDefault), readRoom(path, resolved))
	data, truncated, err := readAt(ctx, f, max(in.integer("offset", 0), 0), size)
	if err != nil {
		return nil, errors.New("read error: " + path)
	}
	out := appendFileRead(path, resolved, data, truncated)
	c.State.Set(0, sessionstate.Artifact{
		Type: "file_read", Provenance: "fs:read", Content: string(out), Size: int64(len(data)),
	})
	return out, nil
}

func appendFileRead(path, resolved string, data []byte, truncated bool) []byte {
	out := jsonx.Build(nil).Text("path", path).Text("resolved", resolved).
		Int("bytes", int64(len(data))).Bool("truncated", truncated).Name("content_b64")
	return append(base64.StdEncoding.AppendEncode(append(out, '"'), data), `"}`...)
}

// readRoom returns how many bytes of a file fit a reply, in which the output stands twice: readMax
// and more, unless the paths have many characters of several bytes.
func readRoom(path, resolved string) int64 {
	frame := len(jsonx.AppendString(nil, appendFileRead(path, resolved, nil, true)))
	return int64(max((maxOutput-replyFrame)/2-frame, 0)) / 4 * 3
}

// readAt returns up to size bytes of f from offset on; more reports that others follow.
func readAt(ctx context.Context, f *os.File, offset, size int64) (data []byte, more bool, err error) {
	room := size + 1 // the byte beyond shows whether there is more, also in files of unknown size
	if st, err := f.Stat(); err == nil && st.Size() > 0 {
		room = min(room, max(st.Size()-offset, 0)+1)
	}
	if offset > math.MaxInt64-room {
		return nil, false, nil
	}
	data = make([]byte, room)
	n, err := io.ReadFull(&untilDone{ctx: ctx, from: io.NewSectionReader(f, offset, room)}, data)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return data[:min(int64(n), size)], int64(n) > size, err
}

// openInput opens the file that the caller of a tool wants read: a relative path is looked for in
// the directory of the request, then in the root. resolved is its path without links.
func (e *Env) openInput(path string) (f *os.File, resolved string, err error) {
	r := newRoot(e.Root)
	if e.RequestDir != "" && !filepath.IsAbs(path) && r.has(e.RequestDir) {
		f, resolved, err = r.open(e.RequestDir + "/" + path)
		if err == nil || !notThere(err) {
			return f, resolved, err
		}
	}
	return r.open(path)
}

// inputError returns the error of a tool for path, which cannot be opened because of err.
func inputError(path string, err error) error {
	switch err {
	case errOutside:
		return errors.New("read path not allowed (outside MACHINA_ROOT): " + path)
	case errNotRegular:
		return errors.New("read error: " + path)
	}
	return errors.New("cannot open file: " + path)
}

// untilDone reads until ctx is done, and counts how much the call works on (tool.Worked): a call
// that reads much must not delay those that read little.
type untilDone struct {
	ctx  context.Context
	from io.Reader   // for Read
	at   io.ReaderAt // for ReadAt
	read int         // by the last of both
}

// Read reads from the file unless ctx is done.
func (u *untilDone) Read(p []byte) (n int, err error) {
	if err = proceed(u.ctx, u.read); err == nil {
		n, err = u.from.Read(p)
		u.read = n
	}
	return n, err
}

// ReadAt reads from the file unless ctx is done.
func (u *untilDone) ReadAt(p []byte, offset int64) (n int, err error) {
	if err = proceed(u.ctx, u.read); err == nil {
		n, err = u.at.ReadAt(p, offset)
		u.read = n
	}
	return n, err
}

// proceed fails if ctx is done, or ends before the call may go on that has worked on n bytes more.
func proceed(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return tool.Worked(ctx, int64(n))
}

// hashDigest returns a digest; fnv1a64 is the standard function, unlike a state's (toolhost §3.6).
func hashDigest(ctx context.Context, e *Env, c *tool.Call) ([]byte, error) {
	in := pick(c.Input, "text", "path", "algo")
	text, isText := in.text("text")
	path, _ := in.text("path")
	if !isText && path == "" {
		return nil, errors.New("missing text/path")
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
		return nil, errors.New("unknown algo")
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
