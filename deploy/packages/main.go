package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// release is what one run makes.
type release struct {
	version string // of the program, as the build has it
	number  string // of packages
	date    time.Time
	root    string // of the repository
	dist    string // where results go
	build   string // GOOS-GOARCH/trunkline, man/ and completions/
}

func main() {
	var r release
	var seconds int64
	flag.StringVar(&r.version, "version", "", "version of the program")
	flag.Int64Var(&seconds, "date", 0, "seconds since 1970 that all files get")
	flag.StringVar(&r.root, "root", "../..", "top of the repository")
	flag.StringVar(&r.dist, "dist", "../../dist", "where the results go")
	flag.StringVar(&r.build, "build", "../../dist/build", "where the binaries are: GOOS-GOARCH/trunkline, man, completions")
	flag.Parse()
	r.date = time.Unix(seconds, 0).UTC()
	if err := r.run(); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func (r *release) run() error {
	changes, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if r.number, err = packageVersion(r.version, string(changes)); err != nil {
		return err
	}
	binaries, err := filepath.Glob(filepath.Join(r.build, "*-*", "trunkline"))
	if err != nil {
		return err
	}
	if len(binaries) == 0 {
		return fmt.Errorf("cannot find a binary in %s", r.build)
	}
	var made []string
	for _, binary := range binaries {
		names, err := r.platform(binary)
		if err != nil {
			return fmt.Errorf("%s: %w", binary, err)
		}
		made = append(made, names...)
	}
	return r.sums(made)
}

// platform makes everything of one binary, and returns the names of the files.
func (r *release) platform(binary string) (made []string, err error) {
	system, arch, _ := strings.Cut(filepath.Base(filepath.Dir(binary)), "-")
	name := "trunkline-" + r.number + "-" + system + "-" + arch
	bom, err := componentsOf(binary, r.version, r.date)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(r.dist, name+".cdx.json"), bom, 0o644); err != nil {
		return nil, err
	}
	made = append(made, name+".cdx.json", name+".tar.gz")
	if err := r.archive(name, binary, bom); err != nil {
		return nil, err
	}
	if system != "linux" {
		return made, nil
	}
	for _, kind := range []string{"deb", "rpm"} {
		file, err := r.pack(kind, arch, binary)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		made = append(made, file)
	}
	return made, nil
}

// sums writes SHA256SUMS in the form of sha256sum.
func (r *release) sums(made []string) error {
	slices.Sort(made)
	var b strings.Builder
	for _, name := range made {
		data, err := os.ReadFile(filepath.Join(r.dist, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), name)
	}
	return os.WriteFile(filepath.Join(r.dist, "SHA256SUMS"), []byte(b.String()), 0o644)
}

var errNoVersion = errors.New("CHANGELOG.md has no heading of the form ## [1.2.3] - DATE")

var (
	tagged   = regexp.MustCompile(`^v?(\d+\.\d+\.\d+)(?:-(\d+)-g([0-9a-f]+))?(-dirty)?$`)
	released = regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$`)
	plain    = regexp.MustCompile(`[^0-9A-Za-z]+`)
)

// packageVersion returns a version that both kinds of packages sort as it is meant. version is that of
// git describe: a tag, commits behind a tag, or the name of a commit where there is no tag. The last
// one precedes the newest version of the changelog.
func packageVersion(version, changes string) (string, error) {
	if m := tagged.FindStringSubmatch(version); m != nil {
		number := m[1]
		if m[2] != "" {
			number += "+" + m[2] + ".g" + m[3]
		}
		if m[4] != "" {
			number += "+dirty"
		}
		return number, nil
	}
	m := released.FindStringSubmatch(changes)
	if m == nil {
		return "", errNoVersion
	}
	if version == "" {
		return m[1], nil
	}
	return m[1] + "~" + plain.ReplaceAllString(version, "."), nil
}
