package config

// Setting is what is known about a setting without its value.
type Setting struct {
	Key, Help string
	// Values are all that it may have; nil if they are not a short list.
	Values []string
}

// Settings lists all settings in the order of the table.
func Settings() []Setting {
	list := make([]Setting, 0, len(table))
	for _, s := range table {
		values := s.oneOf
		if _, ok := s.def.(bool); ok {
			values = []string{"true", "false"}
		}
		list = append(list, Setting{Key: s.key, Help: s.help, Values: values})
	}
	return list
}

// EnvName returns the environment variable of a setting.
func EnvName(key string) string { return envName(key) }
