package config

import (
	"fmt"
	"strings"

	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

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
	{"admin-listen", "admin.listen_addr"},
	{"log-level", "log.level"},
	{"log-format", "log.format"},
}

// AddFlags adds the flags that Load reads: --config, --set, --dev and the dedicated ones. A
// dedicated flag wins over --set.
func AddFlags(fs *pflag.FlagSet) {
	AddSourceFlags(fs)
	fs.Bool(flagDev, false, "throw-away instance: store.mode memory, text log, profiles on the admin address")
	for _, d := range dedicated {
		s, _ := find(d.key)
		fs.String(d.flag, "", fmt.Sprintf("%s (%s, default %v)", s.help, s.key, s.def))
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
	names := make(map[string]string)
	k := koanf.New(delim)
	err := k.Load(posflag.ProviderWithFlag(fs, "", nil, func(f *pflag.Flag) (string, any) {
		for _, d := range dedicated {
			if d.flag == f.Name && f.Changed {
				names[d.key] = "--" + d.flag
				return d.key, f.Value.String()
			}
		}
		return "", nil
	}), nil)
	return layer{kind: layerFlag, names: names, k: k}, err
}
