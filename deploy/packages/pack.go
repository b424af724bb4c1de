package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // a kind of package
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // a kind of package
)

// completions maps the files that the program prints to their places. Debian and RPM differ in that
// of zsh.
var completions = map[string]map[string]string{
	"trunkline.bash": {"": "/usr/share/bash-completion/completions/trunkline"},
	"trunkline.fish": {"": "/usr/share/fish/vendor_completions.d/trunkline.fish"},
	"_trunkline":     {"deb": "/usr/share/zsh/vendor-completions/_trunkline", "rpm": "/usr/share/zsh/site-functions/_trunkline"},
}

// pack makes a package of one kind and returns its name.
func (r *release) pack(kind, arch, binary string) (string, error) {
	work, err := os.MkdirTemp("", "packages")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	contents, err := r.contents(kind, work, binary)
	if err != nil {
		return "", err
	}
	scripts := filepath.Join(r.root, "deploy/packages/scripts")
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "trunkline", Arch: arch, Platform: "linux", Version: r.number, VersionSchema: "none", MTime: r.date,
		Section: "net", Priority: "optional", License: "LicenseRef-none", Maintainer: "Trunkline <maintainers@trunkline.invalid>",
		Description: "State that agents share, over five wire protocols\nProcesses with quotas, pipelines, messages, tools, threads and changes of projects, in one binary.",
		Overridables: nfpm.Overridables{
			Contents: contents,
			Scripts: nfpm.Scripts{
				PostInstall: filepath.Join(scripts, "postinstall.sh"), PreRemove: filepath.Join(scripts, "preremove.sh"),
				PostRemove: filepath.Join(scripts, "postremove.sh"),
			},
			RPM: nfpm.RPM{BuildHost: "localhost", Group: "System Environment/Daemons", Summary: "State that agents share, over five wire protocols"},
		},
	})
	packager, err := nfpm.Get(kind)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := packager.Package(info, &b); err != nil {
		return "", err
	}
	name := packager.ConventionalFileName(info)
	return name, os.WriteFile(filepath.Join(r.dist, name), b.Bytes(), 0o644)
}

// contents lists the files of a package. work is for those that are made.
func (r *release) contents(kind, work, binary string) (all files.Contents, err error) {
	add := func(from, to, how string, mode os.FileMode) {
		all = append(all, &files.Content{Source: from, Destination: to, Type: how, FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.date, Owner: "root", Group: "root"}})
	}
	add(binary, "/usr/bin/trunkline", "", 0o755)
	add(filepath.Join(r.root, "deploy/packages/environment"), "/etc/trunkline/environment", files.TypeConfigNoReplace, 0o640)
	for _, page := range []string{"README.md", "CHANGELOG.md"} {
		add(filepath.Join(r.root, page), "/usr/share/doc/trunkline/"+page, "", 0o644)
	}
	for name, places := range completions {
		place := places[""] + places[kind]
		add(filepath.Join(r.build, "completions", name), place, "", 0o644)
	}
	units, err := filepath.Glob(filepath.Join(r.root, "deploy/systemd/trunkline*.*"))
	if err != nil {
		return nil, err
	}
	if len(units) == 0 {
		return nil, fmt.Errorf("cannot find units in %s", filepath.Join(r.root, "deploy/systemd"))
	}
	for _, unit := range units {
		add(unit, "/usr/lib/systemd/system/"+filepath.Base(unit), "", 0o644)
	}
	pages, err := filepath.Glob(filepath.Join(r.build, "man", "*.[1-8]"))
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		packed := filepath.Join(work, filepath.Base(page)+".gz")
		if err := gzipFile(page, packed); err != nil {
			return nil, err
		}
		section := strings.TrimPrefix(filepath.Ext(page), ".")
		add(packed, "/usr/share/man/man"+section+"/"+filepath.Base(packed), "", 0o644)
	}
	return all, nil
}

// gzipFile compresses a file as policy wants it of man pages, without a name or a time in it.
func gzipFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, b.Bytes(), 0o644)
}
