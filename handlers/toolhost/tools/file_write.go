package tools

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/dsstate"
	"trunkline/handlers/toolhost/tool"
)

// maxWrite is the longest content that FILE.WRITE takes, and the most text, event and meta of one
// line of a memory, in bytes (toolhost §4.7).
const maxWrite = 1 << 20

var (
	errMissingContent  = errors.New("missing content")
	errContentTooLarge = errors.New("content too large (>1MB)")
)

// fileWrite writes a whole file.
func fileWrite(_ context.Context, e *Env, c *tool.Call) ([]byte, error) {
	in := pick(c.Input, "path", "content", "overwrite", "mkdirs")
	path, _ := in.text("path")
	if path == "" {
		return nil, errMissingPath
	}
	content, ok := in.text("content")
	if !ok {
		return nil, errMissingContent
	}
	r := newRoot(e.Root).within(e.WriteRoot)
	if _, err := r.parts(path); err == errOutside {
		return nil, writeError(path, err)
	}
	if len(content) > maxWrite {
		return nil, errContentTooLarge
	}
	d, last, err := r.parent(path, in.boolean("mkdirs", true))
	if err != nil {
		return nil, writeError(path, err)
	}
	defer d.close()
	e.swept.sweep(d, c.Now())
	written, err := r.write(d, last, content, in.boolean("overwrite", false))
	if err != nil {
		return nil, writeError(path, err)
	}
	size := int64(len(content))
	out := jsonx.Build(nil).Bool("ok", true).Text("path", path).Text("written", written).Int("bytes", size).End()
	c.State.Set(0, dsstate.Artifact{Type: "file_write", Provenance: "fs:write", Content: string(out), Size: size})
	return out, nil
}

// writeError returns the error of FILE.WRITE for path, which cannot be written because of err.
func writeError(path string, err error) error {
	switch err {
	case errOutside:
		return errors.New("write path not allowed (outside write root): " + path)
	case unix.EEXIST:
		return errors.New("file exists (overwrite=false): " + path)
	}
	return errors.New("cannot write file: " + path)
}
