package config

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// defaultFile is read from the working directory when --config is not given and the file is there.
const defaultFile = "trunkline.yaml"

// delim separates a section from a name.
const delim = "."

// problems lists everything that is wrong with the settings, so that one run shows all of it.
type problems []string

// Error returns one line per problem.
func (p problems) Error() string {
	if len(p) == 1 {
		return p[0]
	}
	return "cannot use these settings:\n  " + strings.Join(p, "\n  ")
}

// layer is one source of settings. names holds the variable or flag a key came from, when the layer
// has several names.
type layer struct {
	kind  string
	name  string
	names map[string]string
	k     *koanf.Koanf
}

func (l layer) origin(key string) Origin {
	if n, ok := l.names[key]; ok {
		return Origin{Layer: l.kind, Name: n}
	}
	return Origin{Layer: l.kind, Name: l.name}
}

// Load reads all sources, strongest last: defaults, --dev, file, environment, flags. fs must carry
// the flags of AddFlags; environ is in the form of os.Environ. The error is of type problems.
func Load(fs *pflag.FlagSet, environ []string) (*Config, error) {
	c := &Config{origins: make(map[string]Origin, len(table))}
	c.Kernel.Section, c.HTTP.Section, c.Toolhost.Section = "kernel", "http", "toolhost"
	layers, probs := sources(c, fs, environ)
	for _, l := range layers {
		probs = append(probs, unknown(l)...)
	}
	for _, s := range table {
		if p := c.take(s, layers); p != "" {
			probs = append(probs, p)
		}
	}
	if len(probs) == 0 {
		probs = c.validate()
	}
	if len(probs) > 0 {
		return nil, probs
	}
	return c, nil
}

// sources opens every layer, weakest first. A layer that cannot be read is a problem; the others
// are still checked.
func sources(c *Config, fs *pflag.FlagSet, environ []string) (layers []layer, probs problems) {
	add := func(l layer, err error) {
		if err != nil {
			probs = append(probs, err.Error())
			return
		}
		layers = append(layers, l)
	}
	if c.dev, _ = fs.GetBool(flagDev); c.dev {
		add(mapLayer(layerDev, devDefaults(), nil))
	}
	path, err := filePath(fs)
	if err != nil {
		probs = append(probs, err.Error())
	}
	if path != "" {
		c.file = path
		add(fileLayer(path))
	}
	env, strangers, err := envLayer(environ)
	add(env, err)
	c.strangers = strangers
	add(setLayer(fs))
	add(flagLayer(fs))
	return layers, probs
}

// take puts the strongest value of s into its field and remembers the origin. It returns the
// problem, if any.
func (c *Config) take(s setting, layers []layer) string {
	v, from := s.def, Origin{Layer: layerDefault}
	for _, l := range slices.Backward(layers) {
		if got := l.k.Get(s.key); got != nil {
			v, from = got, l.origin(s.key)
			break
		}
	}
	c.origins[s.key] = from
	if err := s.assign(c, v); err != nil {
		return fmt.Sprintf("cannot use %s = %s (%s): %v", s.key, show(v), from, err)
	}
	return ""
}

func filePath(fs *pflag.FlagSet) (string, error) {
	if f := fs.Lookup(flagConfig); f != nil && f.Changed {
		if f.Value.String() == "" {
			return "", fmt.Errorf("cannot use --%s: the path is empty", flagConfig)
		}
		return f.Value.String(), nil
	}
	if _, err := os.Stat(defaultFile); err != nil {
		return "", nil //nolint:nilerr // no file here is the normal case; one that cannot be read is found when it is opened
	}
	return defaultFile, nil
}

func fileLayer(path string) (layer, error) {
	k := koanf.New(delim)
	if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
		return layer{}, fmt.Errorf("cannot read settings file %s: %w", path, err)
	}
	return layer{kind: layerFile, name: path, k: k}, nil
}

// envLayer reads the variables of settings. strangers are the names of those that are meant for
// something else.
func envLayer(environ []string) (l layer, strangers []string, err error) {
	names := make(map[string]string)
	k := koanf.New(delim)
	err = k.Load(env.Provider("", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, v string) (string, any) {
			key := keyOfEnv(name)
			if key != "" && !nearSection(key) {
				strangers = append(strangers, name)
				key = ""
			}
			if key != "" {
				names[key] = name
			}
			return key, v
		},
	}), nil)
	return layer{kind: layerEnv, names: names, k: k}, strangers, err
}

func mapLayer(kind string, values map[string]any, names map[string]string) (layer, error) {
	k := koanf.New(delim)
	err := k.Load(confmap.Provider(values, ""), nil)
	return layer{kind: kind, names: names, k: k}, err
}

// unknown lists the keys of l that are not in the table. A section without content is no key.
func unknown(l layer) problems {
	var p problems
	for _, key := range l.k.Keys() {
		if _, ok := find(key); ok || (isSection(key) && empty(l.k.Get(key))) {
			continue
		}
		p = append(p, fmt.Sprintf("unknown setting %s (%s); the nearest known one is %s", key, l.origin(key), nearest(key)))
	}
	return p
}

// Warnings lists what was not taken and is no reason to refuse: variables whose names begin as
// those of settings do, and that name no section.
func (c *Config) Warnings() []string {
	var w []string
	for _, name := range c.strangers {
		w = append(w, fmt.Sprintf("ignoring the environment variable %s: it is no setting; the nearest one is %s", name, envName(nearest(keyOfEnv(name)))))
	}
	return w
}

func empty(v any) bool {
	m, ok := v.(map[string]any)
	return v == nil || (ok && len(m) == 0)
}
