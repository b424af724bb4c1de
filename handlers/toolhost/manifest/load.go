// Package manifest reads toolpack manifests: which tools there are, what they may do, and what runs
// them (toolhost §4.10).
//
//	{"toolpack_id":"toolpack.text","toolpack_version":"1.0.0","trust_tier":"tier2_untrusted",
//	 "tools":[{"aid":"AID.TEXT.COUNT.v1","name":"count","deterministic":true,"tags":["tag.text"],
//	   "side_effects":["none"],"estimate_model":{"mode":"ConservativeBound"},"inputs_schema":{},
//	   "outputs_schema":{},"exec":{"kind":"process","command":["./count"],"mode":"serve"}}]}
//
//	LoadAll   plugin arguments ("builtin", manifests, directories), no two with the same tool
//	Entry     one tool: its descriptor, and how it is run
//
// The JSON is held to the rules of request lines (toolhost §2.4). Unknown members are passed over,
// but not within exec.
//
// Where toolhost §4.10 is silent: mode is "oneshot" if not given; exec.limits {"as_mb","cpu_s",
// "fsize_mb","nofile"} can only lower limits; env has at most 256 variables of 64 KiB together; a
// manifest is a regular file; null is a value, not absence.
//
// Out of scope: signatures of toolpacks, and judging inputs by their schema.
package manifest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"trunkline/handlers/toolhost/tool"
)

// builtinPlugin is the plugin argument that names all built-in tools (toolhost §2.1).
const builtinPlugin = "builtin"

const (
	// maxManifestBytes is the most a manifest may have: a thousand tools with generous schemas.
	maxManifestBytes = 4 << 20
	maxManifests     = 1024
)

// Invalid returns the error of a manifest that breaks a rule (toolhost §4.10).
func Invalid(path, why string) error { return errors.New("invalid manifest: " + path + ": " + why) }

func duplicate(aid string) string { return "duplicate aid in registry: " + aid }

// LoadAll reads several plugin arguments in their order; builtins means that builtinPlugin is among
// them. A tool that two of them declare is an error, named with the later of the manifests.
func LoadAll(paths []string) (entries []Entry, builtins bool, err error) {
	seen := make(map[string]bool)
	for _, path := range paths {
		if path == builtinPlugin {
			builtins = true
			continue
		}
		files, err := manifests(path)
		if err != nil {
			return nil, false, err
		}
		for _, file := range files {
			list, err := read(file)
			if err != nil {
				return nil, false, err
			}
			for _, e := range list {
				if seen[e.AID] {
					return nil, false, Invalid(file, duplicate(e.AID))
				}
				seen[e.AID] = true
			}
			entries = append(entries, list...)
		}
	}
	return entries, builtins, nil
}

func manifests(path string) ([]string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil && (errors.Is(err, fs.ErrNotExist) || path == ""):
		return nil, errors.New("plugin not found: " + path)
	case err != nil:
		return nil, Invalid(path, "cannot read: "+cause(err))
	case info.IsDir():
		return inDirectory(path)
	case nativeObject(path):
		return nil, errors.New("unsupported plugin: native shared object: " + path)
	case filepath.Ext(path) != ".json":
		return nil, errors.New("unsupported plugin: not a toolpack manifest: " + path)
	}
	return []string{path}, nil
}

// nativeObject reports whether a name is a shared object's ("libx.so.1"): Go loads none (D1).
func nativeObject(path string) bool {
	name := strings.ToLower(filepath.Base(path))
	switch filepath.Ext(name) {
	case ".so", ".dll", ".dylib":
		return true
	}
	return strings.Contains(name, ".so.") && filepath.Ext(name) != ".json"
}

// inDirectory returns the manifests of a directory but for hidden files.
func inDirectory(dir string) ([]string, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, Invalid(dir, "cannot read: "+cause(err))
	}
	var files []string
	for _, e := range list {
		name := e.Name()
		if filepath.Ext(name) != ".json" || strings.HasPrefix(name, ".") {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			continue
		}
		if len(files) == maxManifests {
			return nil, Invalid(dir, "too many manifests")
		}
		files = append(files, path)
	}
	slices.Sort(files)
	return files, nil
}

func read(path string) ([]Entry, error) {
	text, err := content(path)
	if err != nil {
		return nil, Invalid(path, "cannot read: "+cause(err))
	}
	if len(text) > maxManifestBytes {
		return nil, Invalid(path, "exceeds 4MB limit")
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, Invalid(path, "cannot resolve: "+cause(err))
	}
	entries, why := parse(text, dir)
	if why != "" {
		return nil, Invalid(path, why)
	}
	for i := range entries {
		entries[i].Path = path
	}
	return entries, nil
}

// content returns at most one byte more of a regular file than a manifest may have.
func content(path string) ([]byte, error) {
	f, _, err := tool.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return io.ReadAll(io.LimitReader(f, maxManifestBytes+1))
}

func cause(err error) string {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err
	}
	return err.Error()
}
