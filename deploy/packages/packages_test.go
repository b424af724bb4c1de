package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestPackageVersion(t *testing.T) {
	const changes = "# Changelog\n\n## [Unreleased]\n\n## [0.16.0] - 2026-11-25\n\n## [0.15.0] - 2026-11-24\n"
	f := func(version, changes, want string) {
		t.Helper()
		if got, err := packageVersion(version, changes); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v, want %q", version, got, err, want)
		}
	}
	f("v1.2.3", "", "1.2.3")
	f("1.2.3", "", "1.2.3")
	f("v1.2.3-4-gabc1234", "", "1.2.3+4.gabc1234")
	f("v1.2.3-4-gabc1234-dirty", "", "1.2.3+4.gabc1234+dirty")
	f("", changes, "0.16.0")
	f("abc1234", changes, "0.16.0~abc1234")
	f("abc1234-dirty", changes, "0.16.0~abc1234.dirty")
	f("abc1234", "# Changelog\n\n## [Unreleased]\n", "")
}

// smallest builds the smallest program.
func smallest(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module small\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", "small", ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return read(t, dir, "small")
}

// inputs makes what make release makes before, with another program.
func inputs(t *testing.T, dist string, program []byte) *release {
	t.Helper()
	r := &release{version: "v0.16.0", date: time.Unix(1700000000, 0).UTC(), root: t.TempDir(), dist: dist, build: t.TempDir()}
	write := func(path string, data []byte) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, platform := range []string{"linux-amd64", "linux-arm64", "darwin-arm64"} {
		write(filepath.Join(r.build, platform, "trunkline"), program)
	}
	for _, name := range []string{"trunkline.bash", "trunkline.fish", "_trunkline"} {
		write(filepath.Join(r.build, "completions", name), []byte("complete "+name))
	}
	write(filepath.Join(r.build, "man", "trunkline-serve.1"), []byte(".TH serve"))
	for _, name := range []string{"README.md", "CHANGELOG.md", "deploy/systemd/trunkline.service", "deploy/systemd/trunkline.socket"} {
		write(filepath.Join(r.root, name), []byte(name))
	}
	for _, name := range []string{"environment", "scripts/postinstall.sh", "scripts/preremove.sh", "scripts/postremove.sh"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		write(filepath.Join(r.root, "deploy/packages", name), data)
	}
	return r
}

// shipped is what every package puts on a machine, with the mode of each file.
var shipped = map[string]os.FileMode{
	"/etc/trunkline/environment":                          0o640,
	"/usr/bin/trunkline":                                  0o755,
	"/usr/lib/systemd/system/trunkline.service":           0o644,
	"/usr/lib/systemd/system/trunkline.socket":            0o644,
	"/usr/share/bash-completion/completions/trunkline":    0o644,
	"/usr/share/doc/trunkline/CHANGELOG.md":               0o644,
	"/usr/share/doc/trunkline/README.md":                  0o644,
	"/usr/share/fish/vendor_completions.d/trunkline.fish": 0o644,
	"/usr/share/man/man1/trunkline-serve.1.gz":            0o644,
}

// TestRelease makes everything twice, compares the bytes, and looks into what was made.
func TestRelease(t *testing.T) {
	var dists [2]string
	program := smallest(t)
	for i := range dists {
		dists[i] = t.TempDir()
		if err := inputs(t, dists[i], program).run(); err != nil {
			t.Fatal(err)
		}
	}
	names := list(t, dists[0])
	want := []string{
		"SHA256SUMS", "trunkline-0.16.0-1.aarch64.rpm", "trunkline-0.16.0-1.x86_64.rpm",
		"trunkline-0.16.0-darwin-arm64.cdx.json", "trunkline-0.16.0-darwin-arm64.tar.gz",
		"trunkline-0.16.0-linux-amd64.cdx.json", "trunkline-0.16.0-linux-amd64.tar.gz",
		"trunkline-0.16.0-linux-arm64.cdx.json", "trunkline-0.16.0-linux-arm64.tar.gz",
		"trunkline_0.16.0_amd64.deb", "trunkline_0.16.0_arm64.deb",
	}
	if !slices.Equal(names, want) || !slices.Equal(names, list(t, dists[1])) {
		t.Fatalf("%q", names)
	}
	for _, name := range names {
		if !bytes.Equal(read(t, dists[0], name), read(t, dists[1], name)) {
			t.Errorf("%s differs between two runs", name)
		}
	}
	checkSums(t, dists[0], names)
	checkArchive(t, read(t, dists[0], "trunkline-0.16.0-linux-amd64.tar.gz"))
	checkDeb(t, filepath.Join(dists[0], "trunkline_0.16.0_amd64.deb"))
	checkRPM(t, read(t, dists[0], "trunkline-0.16.0-1.x86_64.rpm"))
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func checkSums(t *testing.T, dist string, names []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(string(read(t, dist, "SHA256SUMS"))), "\n")
	if len(lines) != len(names)-1 {
		t.Errorf("%d sums of %d files", len(lines), len(names)-1)
	}
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		if got := fmt.Sprintf("%x", sha256.Sum256(read(t, dist, name))); got != sum {
			t.Errorf("%s has %s", line, got)
		}
	}
}

// TestComponents looks for the modules that are linked into this test.
func TestComponents(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := componentsOf(self, "v0.16.0", time.Unix(1700000000, 0).UTC())
	if err != nil {
		t.Fatal(err)
	}
	var b bom
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil {
		t.Fatal(err)
	}
	refs := map[string]bool{}
	for _, c := range b.Components {
		if refs[c.Ref] || c.PURL == "" || c.Version == "" {
			t.Errorf("%+v", c)
		}
		refs[c.Ref] = true
	}
	for _, ref := range b.Dependencies[0].DependsOn {
		if !refs[ref] {
			t.Errorf("%s is no component", ref)
		}
	}
	nfpm := slices.IndexFunc(b.Components, func(c component) bool { return c.Name == "github.com/goreleaser/nfpm/v2" })
	if nfpm < 0 || !strings.HasPrefix(b.Components[nfpm].Properties[0].Value, "h1:") || !refs["std"] {
		t.Errorf("modules are missing among %d", len(b.Components))
	}
	if b.Format != "CycloneDX" || b.SpecVersion != "1.6" || b.Metadata.Timestamp != "2023-11-14T22:13:20Z" || len(b.SerialNumber) != len("urn:uuid:")+36 {
		t.Errorf("%+v", b.Metadata)
	}
}

func checkArchive(t *testing.T, data []byte) {
	t.Helper()
	const top = "trunkline-0.16.0-linux-amd64/"
	got := tarOf(t, data)
	for name, mode := range map[string]os.FileMode{
		"": 0o755, "README.md": 0o644, "CHANGELOG.md": 0o644, "completions/": 0o755, "completions/_trunkline": 0o644, "completions/trunkline.bash": 0o644,
		"completions/trunkline.fish": 0o644, "man/": 0o755, "man/trunkline-serve.1": 0o644, "sbom.cdx.json": 0o644, "trunkline": 0o755,
	} {
		if m, ok := got[top+name]; !ok || m != mode {
			t.Errorf("%s: %v %v in %v", name, m, ok, got)
		}
	}
}

// tarOf returns the modes of the entries of a compressed archive. All are of one time and of root.
func tarOf(t *testing.T, data []byte) map[string]os.FileMode {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]os.FileMode{}
	in := tar.NewReader(unpacked)
	for {
		h, err := in.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.Unix() != 1700000000 || h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s: %v, owner %d:%d", h.Name, h.ModTime, h.Uid, h.Gid)
		}
		all[h.Name] = os.FileMode(h.Mode).Perm()
	}
}

// members reads an archive of ar.
func members(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	in := bufio.NewReader(bytes.NewReader(data))
	if magic, err := in.ReadString('\n'); err != nil || magic != "!<arch>\n" {
		t.Fatalf("%q %v", magic, err)
	}
	all := map[string][]byte{}
	for {
		head := make([]byte, 60)
		if _, err := io.ReadFull(in, head); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		size, err := strconv.Atoi(strings.TrimSpace(string(head[48:58])))
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, size+size%2)
		if _, err := io.ReadFull(in, body); err != nil {
			t.Fatal(err)
		}
		all[strings.Trim(string(head[:16]), " /")] = body[:size]
	}
}

func checkDeb(t *testing.T, path string) {
	t.Helper()
	parts := members(t, read(t, filepath.Dir(path), filepath.Base(path)))
	got := tarOf(t, parts["data.tar.gz"])
	zsh := "/usr/share/zsh/vendor-completions/_trunkline"
	for name, mode := range shipped {
		if m, ok := got["."+name]; !ok || m != mode {
			t.Errorf("deb: %s: %v %v", name, m, ok)
		}
	}
	if _, ok := got["."+zsh]; !ok {
		t.Errorf("deb: no %s in %v", zsh, got)
	}
	control := tarOf(t, parts["control.tar.gz"])
	for _, name := range []string{"./control", "./conffiles", "./md5sums", "./postinst", "./prerm", "./postrm"} {
		if _, ok := control[name]; !ok {
			t.Errorf("deb: no %s in %v", name, control)
		}
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Log("there is no dpkg-deb here")
		return
	}
	out, err := exec.Command("dpkg-deb", "--field", path, "Package", "Version", "Architecture").CombinedOutput()
	if err != nil || string(out) != "Package: trunkline\nVersion: 0.16.0\nArchitecture: amd64\n" {
		t.Errorf("%v\n%s", err, out)
	}
	root := t.TempDir()
	if out, err := exec.Command("dpkg-deb", "--extract", path, root).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if page := read(t, root, "usr/lib/systemd/system/trunkline.service"); string(page) != "deploy/systemd/trunkline.service" {
		t.Errorf("%q", page)
	}
}

// TestRemovalEndsEveryUnit: systemctl disable takes names, and a socket that is left out goes on
// listening for a program that is gone.
func TestRemovalEndsEveryUnit(t *testing.T) {
	script, err := os.ReadFile("scripts/preremove.sh")
	if err != nil {
		t.Fatal(err)
	}
	_, names, ok := strings.Cut(string(script), "systemctl disable --now ")
	if !ok {
		t.Fatalf("nothing is disabled:\n%s", script)
	}
	names, _, _ = strings.Cut(names, "||")
	disabled := strings.Fields(strings.ReplaceAll(names, "\\\n", " "))
	units, err := filepath.Glob("../systemd/trunkline*.*")
	if err != nil || len(units) < 2 {
		t.Fatalf("%v %v", units, err)
	}
	for i, unit := range units {
		units[i] = filepath.Base(unit)
	}
	slices.Sort(disabled)
	slices.Sort(units)
	if !slices.Equal(disabled, units) {
		t.Errorf("%q are disabled, %q are installed", disabled, units)
	}
}
