package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// defaultFile is read from the working directory when --config is not given and the file is there.
const defaultFile = "trunkline.yaml"

// delim separates a section from a name.
const delim = "."

// problems lists everything that is wrong with the settings, so that one run shows all of it.
type problems []string

// add notes one more problem.
func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

// Error returns one line per problem.
func (p problems) Error() string {
	if len(p) == 1 {
		return p[0]
	}
	return "cannot use these settings:\n  " + strings.Join(p, "\n  ")
}

// Problems returns an error that lists what is wrong with settings, nil if nothing is.
func Problems(list []string) error {
	if len(list) == 0 {
		return nil
	}
	return problems(list)
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
	return LoadWithSockets(fs, environ, nil)
}

// LoadWithSockets is Load for a process that was started with open sockets: their addresses, by the
// setting that they stand for, are the strongest layer.
func LoadWithSockets(fs *pflag.FlagSet, environ []string, sockets map[string][]string) (*Config, error) {
	c := &Config{origins: make(map[string]Origin, len(table))}
	c.Kernel.Section, c.HTTP.Section, c.Toolhost.Section, c.Threads.Section, c.Exacta.Section = "kernel", "http", "toolhost", "threads", "exacta"
	layers, probs := sources(c, fs, environ)
	open, err := socketLayer(sockets)
	if err != nil {
		probs = append(probs, err.Error())
	}
	layers = append(layers, open)
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
		add(fileLayer(path, &c.blank))
	}
	env, strangers, err := envLayer(environ)
	add(env, err)
	c.strangers = strangers
	add(setLayer(fs))
	add(flagLayer(fs))
	return layers, probs
}

// socketLayer has the addresses of open sockets.
func socketLayer(sockets map[string][]string) (layer, error) {
	values := make(map[string]any, len(sockets))
	for key, addrs := range sockets {
		values[key] = strings.Join(addrs, ",")
	}
	return mapLayer(layerSocket, values, nil)
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

// envLayer reads the variables of settings. strangers are the names of those that are meant for
// something else.
func envLayer(environ []string) (l layer, strangers []string, err error) {
	values, names := make(map[string]any), make(map[string]string)
	all := make(map[string]string, len(environ))
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=") // execve takes entries without one too
		if ok {
			all[name] = value
		}
		switch key := keyOfEnv(name); {
		case !ok, key == "":
		case nearSection(key):
			values[key], names[key] = value, name
		default:
			strangers = append(strangers, name)
		}
	}
	if err = aliases(all, values, names); err == nil {
		l, err = mapLayer(layerEnv, values, names)
	}
	return l, strangers, err
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
		p.add("unknown setting %s (%s); the nearest known one is %s", key, l.origin(key), nearest(key))
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

// envPrefix starts the name of every environment variable read as a setting.
const envPrefix = "TRUNKLINE_"

// orchestrated matches what a container orchestrator injects for a service that happens to be
// called trunkline or trunkline-kernel (TRUNKLINE_SERVICE_HOST, TRUNKLINE_PORT_50051_TCP_ADDR,
// TRUNKLINE_KERNEL_PORT, …). No setting of ours has such a name, and refusing to start over it
// would not help. Compiled when first asked for, so that commands without settings do not pay for
// it at start.
var orchestrated = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)
})

// envName returns the environment variable of a setting.
func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, delim, "_"))
}

// clientEnv are the variables of the client verbs; they are no settings of a server.
var clientEnv = []string{envPrefix + "ADDR", envPrefix + "CONTEXT"}

// keyOfEnv returns the setting an environment variable names, known or not; "" for variables that
// are none of ours.
func keyOfEnv(name string) string {
	if !strings.HasPrefix(name, envPrefix) || slices.Contains(clientEnv, name) || orchestrated().MatchString(name) {
		return ""
	}
	rest := strings.ToLower(strings.TrimPrefix(name, envPrefix))
	return strings.Replace(rest, "_", delim, 1)
}

func isSection(key string) bool {
	for _, s := range table {
		if strings.HasPrefix(s.key, key+delim) {
			return true
		}
	}
	return false
}

const (
	flagConfig = "config"
	flagSet    = "set"
	flagDev    = "dev"
)

// dedicated lists the settings with a flag of their own; the rest is reached by --set.
var dedicated = []struct{ flag, key string }{
	{"listen", "kernel.listen_addr"},
	{"http-listen", "http.listen_addr"},
	{"toolhost-listen", "toolhost.listen_addr"},
	{"threads-listen", "threads.listen_addr"},
	{"admin-listen", "admin.listen_addr"},
	{"log-level", "log.level"},
	{"log-format", "log.format"},
}

// AddFlags adds the flags that Load reads: --config, --set, --dev and the dedicated ones. A
// dedicated flag wins over --set.
func AddFlags(fs *pflag.FlagSet) {
	AddSourceFlags(fs)
	fs.Bool(flagDev, false, "throw-away instance: store.mode memory, text log, profiles on the admin address, a token of agent threads")
	for _, d := range dedicated {
		s, _ := find(d.key)
		fs.String(d.flag, "", fmt.Sprintf("%s (%s, default %v)", s.help, s.key, cmp.Or(fmt.Sprint(s.def), "empty")))
	}
}

// AddSourceFlags adds --config and --set only, for commands that look at a server's settings
// without being one.
func AddSourceFlags(fs *pflag.FlagSet) {
	fs.StringP(flagConfig, "c", "", "settings file, YAML (default ./"+defaultFile+" when it is there)")
	fs.StringArray(flagSet, nil, "set one setting, `key=value`; repeatable")
}

func setLayer(fs *pflag.FlagSet) (layer, error) {
	pairs, _ := fs.GetStringArray(flagSet)
	values := make(map[string]any, len(pairs))
	names := make(map[string]string, len(pairs))
	for _, p := range pairs {
		key, v, ok := strings.Cut(p, "=")
		if !ok || key == "" {
			return layer{}, fmt.Errorf("cannot use --%s %q: want key=value", flagSet, p)
		}
		values[key], names[key] = v, "--"+flagSet
	}
	return mapLayer(layerFlag, values, names)
}

func flagLayer(fs *pflag.FlagSet) (layer, error) {
	values, names := make(map[string]any), make(map[string]string)
	for _, d := range dedicated {
		if f := fs.Lookup(d.flag); f != nil && f.Changed {
			values[d.key], names[d.key] = f.Value.String(), "--"+d.flag
		}
	}
	return mapLayer(layerFlag, values, names)
}
