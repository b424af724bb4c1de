package config

import "strings"

// Schema returns a JSON Schema (2020-12) of the settings file, for editors: every setting with its
// type, range, values, default and meaning. Both spellings of a key are in it, kernel.loops and
// loops in kernel.
func Schema() map[string]any {
	properties := make(map[string]any)
	for _, s := range table {
		section, name, _ := strings.Cut(s.key, delim)
		group, ok := properties[section].(map[string]any)
		if !ok {
			group = map[string]any{
				"type": []string{"object", "null"}, "additionalProperties": false, "properties": map[string]any{},
				"description": "settings that begin with " + section + delim,
			}
			properties[section] = group
		}
		group["properties"].(map[string]any)[name] = s.schema()
		properties[s.key] = map[string]any{"$ref": "#/properties/" + section + "/properties/" + name}
	}
	return map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Settings of trunkline",
		"type": "object", "additionalProperties": false, "properties": properties,
	}
}

// schema returns that of the value of one setting in a file.
func (s setting) schema() map[string]any {
	reload := "A reload changes it."
	if !s.live {
		reload = "A change takes a restart."
	}
	v := map[string]any{"description": s.help + ". " + reload, "default": s.def}
	switch s.at(new(Config)).(type) {
	case *bool:
		v["type"] = "boolean"
	case *[]string:
		text := map[string]any{"type": "string", "minLength": 1}
		list := map[string]any{"type": "array", "items": text, "minItems": 1}
		if s.optional {
			text = map[string]any{"type": "string"}
			delete(list, "minItems")
		}
		v["anyOf"] = []any{text, list}
	case *[]Webhook:
		v["type"], v["maxItems"] = "array", maxWebhooks
	case *string:
		v["type"] = "string"
		if s.oneOf != nil {
			v["enum"] = s.oneOf
		}
	default:
		v["type"], v["minimum"], v["maximum"] = "integer", s.min, s.max
	}
	return v
}

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
