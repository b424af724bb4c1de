package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"sort"
	"strings"
	"trunkline/engine/smallfile"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// filePath returns the settings file: that of --config, else the one of the working directory, ""
// for none.
func filePath(flags *pflag.FlagSet) (string, error) {
	if f := flags.Lookup(flagConfig); f != nil && f.Changed {
		if f.Value.String() == "" {
			return "", fmt.Errorf("cannot use --%s: the path is empty", flagConfig)
		}
		return f.Value.String(), nil
	}
	if _, err := os.Stat(defaultFile); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return defaultFile, nil // what else is wrong with it is found when it is opened
}

// fileLayer reads a settings file; blank becomes whether it has no byte.
func fileLayer(path string, blank *bool) (layer, error) {
	text, err := smallfile.Read(path)
	*blank = err == nil && len(text) == 0
	var m map[string]any
	if err == nil {
		m, err = parseYAML(text)
	}
	k := koanf.New(delim)
	if err == nil {
		err = k.Load(confmap.Provider(m, ""), nil)
	}
	if err != nil {
		return layer{}, fmt.Errorf("cannot read settings file %s: %w", path, err)
	}
	return layer{kind: layerFile, name: path, k: k}, nil
}

// parseYAML reads one document, in which a setting has one value, however it is spelled: as
// "kernel.loops", or as loops in kernel.
func parseYAML(text []byte) (map[string]any, error) {
	m, err := yaml.Parser().Unmarshal(text)
	if err != nil {
		return nil, atLine(text, err)
	}
	return m, errors.Join(oneDocument(text), once(m, "", make(map[string]bool)))
}

// atLine names the line of an error of the YAML parser. For errors of syntax that names one too
// early, or none: it is the last line of the shortest part of the text that has the same error.
func atLine(text []byte, err error) error {
	if list, ok := strings.CutPrefix(err.Error(), "yaml: unmarshal errors:\n  "); ok {
		return errors.New(notSettings.ReplaceAllString(list, "want settings, name: value"))
	}
	what, lines := yamlPlace.ReplaceAllString(err.Error(), ""), strings.SplitAfter(string(text), "\n")
	n := sort.Search(len(lines)-1, func(i int) bool {
		_, err := yaml.Parser().Unmarshal([]byte(strings.Join(lines[:i+1], "")))
		return err != nil && yamlPlace.ReplaceAllString(err.Error(), "") == what
	})
	return fmt.Errorf("line %d: %s", n+1, what)
}

var yamlPlace, notSettings = regexp.MustCompile(`^yaml: (line \d+: )?`), regexp.MustCompile(`cannot unmarshal .*`)

// oneDocument returns an error if text has content behind its first YAML document, which the parser
// leaves out. A line that begins with one of the two markers is one wherever it is.
func oneDocument(text []byte) error {
	began, ended := false, false
	for n, line := range strings.Split(string(text), "\n") {
		content := strings.TrimSpace(line)
		marker, rest, _ := strings.Cut(strings.ReplaceAll(content, "\t", " "), " ")
		switch {
		case strings.HasPrefix(line, "---") && marker == "---":
			began, ended, content = true, began, strings.TrimSpace(rest)
		case strings.HasPrefix(line, "...") && marker == "...":
			began, ended, content = true, true, ""
		case strings.HasPrefix(line, "%") && !began:
			content = ""
		}
		if content == "" || content[0] == '#' {
			continue
		}
		if ended {
			return fmt.Errorf("line %d: want one document, nothing may follow its end (--- or ...)", n+1)
		}
		began = true
	}
	return nil
}

// once returns an error if two members of m, at any depth, are the same setting.
func once(m map[string]any, section string, seen map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		inner, nested := m[name].(map[string]any)
		key := section + name
		if nested {
			if err := once(inner, key+delim, seen); err != nil {
				return err
			}
		} else if seen[key] {
			return fmt.Errorf("%s is set twice", key)
		}
		seen[key] = true
	}
	return nil
}
