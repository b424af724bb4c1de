package tools

import (
	"fmt"
	"path/filepath"
	"time"
)

// Env is what the built-in tools work on (toolhost §4.7, §6). It is set up once and then only read,
// by any goroutine. All directories are absolute and clean; none has to exist.
type Env struct {
	// Root is the directory that files are read in: MACHINA_ROOT, else the working directory.
	Root string
	// RequestDir is where relative names of files to read are looked for first: MACHINA_REQUEST_DIR, "" for nowhere. One that
	// does not lie inside Root is not looked into: nothing there may be read.
	RequestDir string
	// WriteRoot is the directory that files are written in: MACHINA_FS_WRITE_ROOT, else work in
	// Root. The operator may name one outside of Root.
	WriteRoot string
	// Now is the wall clock of what happens outside of a call; a call brings its own (tool.Call).
	Now func() time.Time
	// MemoryEnv is what the MEMORY and VECDB tools need beyond that.
	MemoryEnv
	// Embed is what makes embeddings.
	Embed EmbedEnv

	swept sweeps // by FILE.WRITE
}

// EnvFrom reads the environment that getenv gives; wd is the working directory, which stands in for a missing MACHINA_ROOT and
// completes a relative one. The other directories are relative to the root. It fails if the root would not be absolute, or
// if an unknown provider of embeddings is named.
func EnvFrom(getenv func(string) string, wd string) (*Env, error) {
	root := under(wd, getenv("MACHINA_ROOT"))
	if !filepath.IsAbs(root) {
		return nil, fmt.Errorf("cannot use root: %q is not absolute and no absolute working directory is known", root)
	}
	e := &Env{Root: root, WriteRoot: filepath.Join(root, "work"), Now: time.Now}
	if dir := getenv("MACHINA_REQUEST_DIR"); dir != "" {
		e.RequestDir = under(root, dir)
	}
	if dir := getenv("MACHINA_FS_WRITE_ROOT"); dir != "" {
		e.WriteRoot = under(root, dir)
	}
	e.MemoryEnv = memoryEnvFrom(getenv, root)
	var err error
	e.Embed, err = embedEnvFrom(getenv)
	return e, err
}

// under returns dir, which counts from base if it is relative, without "." and "..".
func under(base, dir string) string {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(base, dir)
}
