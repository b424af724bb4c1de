package tools

import (
	"context"
	"strconv"

	"golang.org/x/sys/unix"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/dsstate"
	"trunkline/handlers/toolhost/tool"
)

// maxWrite is the longest content that FILE.WRITE takes, in bytes (toolhost §4.7).
const maxWrite = 1 << 20

// fileWrite writes a whole file.
func fileWrite(e *Env) Builtin {
	swept := new(sweeps)
	return builtin(tool.Descriptor{
		AID:         "AID.FILE.WRITE.v1",
		Name:        "file_write",
		Tags:        []string{"tag.fs", "tag.meta"},
		SideEffects: []string{"filesystem_write"},
	}, func(_ context.Context, c *tool.Call) tool.Result { return runFileWrite(e, swept, c) })
}

func runFileWrite(e *Env, swept *sweeps, c *tool.Call) tool.Result {
	in := pick(c.Input, "path", "content", "overwrite", "mkdirs")
	path, _ := in.text("path")
	if path == "" {
		return tool.Fail("missing path")
	}
	content, ok := in.text("content")
	if !ok {
		return tool.Fail("missing content")
	}
	r := e.writeRoot()
	if _, err := r.parts(path); err == errOutside {
		return tool.Fail(writeFailure(path, err))
	}
	if len(content) > maxWrite {
		return tool.Fail("content too large (>1MB)")
	}
	d, last, err := r.parent(path, in.boolean("mkdirs", true))
	if err != nil {
		return tool.Fail(writeFailure(path, err))
	}
	defer d.close()
	swept.sweep(d, c.Now())
	written, err := r.write(d, last, content, in.boolean("overwrite", false))
	if err != nil {
		return tool.Fail(writeFailure(path, err))
	}
	out := appendFileWrite(nil, path, written, len(content))
	c.State.Set(0, dsstate.Artifact{Type: "file_write", Provenance: "fs:write", Content: string(out), Size: int64(len(content))})
	return tool.Result{Output: out}
}

func appendFileWrite(dst []byte, path, written string, n int) []byte {
	dst = append(dst, `{"ok":true,"path":`...)
	dst = jsonx.AppendString(dst, path)
	dst = append(dst, `,"written":`...)
	dst = jsonx.AppendString(dst, written)
	dst = append(dst, `,"bytes":`...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '}')
}

// writeFailure returns what FILE.WRITE says about path that it cannot write.
func writeFailure(path string, err error) string {
	switch err {
	case errOutside:
		return "write path not allowed (outside write root): " + path
	case unix.EEXIST:
		return "file exists (overwrite=false): " + path
	}
	return "cannot write file: " + path
}
