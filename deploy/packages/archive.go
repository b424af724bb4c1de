package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// file is something that is shipped.
type file struct {
	name string // below the top of the archive
	mode int64
	data []byte
}

// documents returns what every archive has beside the binary: pages, man pages, completions.
func (r *release) documents() (all []file, err error) {
	for _, name := range []string{"README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return nil, err
		}
		all = append(all, file{name, 0o644, data})
	}
	for _, dir := range []string{"completions", "man"} {
		names, err := filepath.Glob(filepath.Join(r.build, dir, "*"))
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("cannot find %s in %s", dir, r.build)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			all = append(all, file{dir + "/" + filepath.Base(name), 0o644, data})
		}
	}
	return all, nil
}

// archive writes the archive of one platform.
func (r *release) archive(name, binary string, bom []byte) error {
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	all, err := r.documents()
	if err != nil {
		return err
	}
	all = append(all, file{"sbom.cdx.json", 0o644, bom}, file{"trunkline", 0o755, program})
	var b bytes.Buffer
	packed, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	out := tar.NewWriter(packed)
	made := map[string]bool{}
	for _, f := range all {
		dir := name + "/" + filepath.Dir(f.name) + "/"
		dir = strings.TrimSuffix(dir, "./")
		if !made[dir] {
			made[dir] = true
			if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: r.date}); err != nil {
				return err
			}
		}
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name + "/" + f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: r.date}); err != nil {
			return err
		}
		if _, err := out.Write(f.data); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dist, name+".tar.gz"), b.Bytes(), 0o644)
}
