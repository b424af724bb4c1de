package tools

import (
	"context"
	"encoding/base64"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/dsstate"
	"trunkline/handlers/toolhost/tool"
)

const (
	// readDefault is how many bytes FILE.READ returns if the caller does not say.
	readDefault = 256 << 10
	// readMax is the most it returns: as base64 in the output and again in DS0 they fit one reply (toolhost D31).
	readMax = 360 << 10
	// replyFrame is more than what a reply has beside the output and DS0's content, a request_id of 128 escapes included.
	replyFrame = 4 << 10
)

// fileRead returns a part of a file.
func fileRead(e *Env) Builtin {
	return builtin(tool.Descriptor{
		AID:           "AID.FILE.READ.v1",
		Name:          "file_read",
		Deterministic: true,
		Tags:          []string{"tag.fs", "tag.meta"},
		SideEffects:   []string{"filesystem_read"},
		ReplayInputs:  []string{"path_fingerprint"},
	}, func(ctx context.Context, c *tool.Call) tool.Result { return runFileRead(ctx, e, c) })
}

func runFileRead(ctx context.Context, e *Env, c *tool.Call) tool.Result {
	in := pick(c.Input, "path", "max_bytes", "offset")
	path, _ := in.text("path")
	if path == "" {
		return tool.Fail("missing path")
	}
	f, resolved, err := e.openInput(path)
	if err != nil {
		return tool.Fail(readFailure(path, err))
	}
	defer f.Close()
	size := in.integer("max_bytes", readDefault)
	if size < 1 {
		size = readDefault
	}
	data, truncated, err := readAt(ctx, f, max(in.integer("offset", 0), 0), min(size, readMax, readRoom(path, resolved)))
	if err != nil {
		return failed(ctx, "read error: "+path)
	}
	out := appendFileRead(nil, path, resolved, data, truncated)
	c.State.Set(0, dsstate.Artifact{Type: "file_read", Provenance: "fs:read", Content: string(out), Size: int64(len(data))})
	return tool.Result{Output: out}
}

func appendFileRead(dst []byte, path, resolved string, data []byte, truncated bool) []byte {
	dst = append(dst, `{"path":`...)
	dst = jsonx.AppendString(dst, path)
	dst = append(dst, `,"resolved":`...)
	dst = jsonx.AppendString(dst, resolved)
	dst = append(dst, `,"bytes":`...)
	dst = strconv.AppendInt(dst, int64(len(data)), 10)
	dst = append(dst, `,"truncated":`...)
	dst = strconv.AppendBool(dst, truncated)
	dst = append(dst, `,"content_b64":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, data)
	return append(dst, `"}`...)
}

// readRoom returns how many bytes of a file fit a reply, in which the output stands twice: readMax and more, unless the paths have
// many characters that take several bytes each, every time they are put into a string.
func readRoom(path, resolved string) int64 {
	frame := len(jsonx.AppendString(nil, appendFileRead(nil, path, resolved, nil, true)))
	return int64(max((maxOutput-replyFrame)/2-frame, 0)) / 4 * 3
}

// readAt returns up to size bytes of f from offset on; more tells that f has others behind them.
func readAt(ctx context.Context, f *os.File, offset, size int64) (data []byte, more bool, err error) {
	room := size + 1 // the byte beyond says whether there is more, also in files whose size says nothing
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
	if int64(n) > size {
		return data[:size], true, err
	}
	return data[:n], false, err
}

// openInput opens the file that the caller of a tool wants read: a relative path is looked for in the directory of the request,
// then in the root. resolved is its path without links.
func (e *Env) openInput(path string) (f *os.File, resolved string, err error) {
	r := e.readRoot()
	if e.RequestDir != "" && !filepath.IsAbs(path) && r.has(e.RequestDir) {
		f, resolved, err = r.open(e.RequestDir + "/" + path)
		if err == nil || !notThere(err) {
			return f, resolved, err
		}
	}
	return r.open(path)
}

// readFailure returns what a tool says about path that it cannot open.
func readFailure(path string, err error) string {
	switch err {
	case errOutside:
		return "read path not allowed (outside MACHINA_ROOT): " + path
	case errNotRegular:
		return "read error: " + path
	}
	return "cannot open file: " + path
}
