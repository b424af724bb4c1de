package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// assign parses v as the type of the setting's field, checks its range and stores it.
func (s setting) assign(c *Config, v any) error {
	switch p := s.at(c).(type) {
	case *int:
		return s.assignInt(p, v)
	case *bool:
		return assignBool(p, v)
	case *[]string:
		return s.assignList(p, v)
	case *string:
		return s.assignString(p, v)
	}
	return fmt.Errorf("BUG: no parser for setting %s", s.key)
}

func (s setting) assignInt(p *int, v any) error {
	n, ok := v.(int)
	if str, isText := v.(string); isText {
		parsed, err := strconv.Atoi(str)
		n, ok = parsed, err == nil
	}
	if !ok || n < s.min || n > s.max {
		return fmt.Errorf("want an integer from %d to %d", s.min, s.max)
	}
	*p = n
	return nil
}

func (s setting) assignString(p *string, v any) error {
	str, ok := v.(string)
	if !ok {
		return errors.New("want text")
	}
	if s.oneOf != nil && !slices.Contains(s.oneOf, str) {
		return fmt.Errorf("want one of %s", strings.Join(s.oneOf, ", "))
	}
	*p = str
	return nil
}

func assignBool(p *bool, v any) error {
	switch v {
	case true, "true", "1":
		*p = true
	case false, "false", "0":
		*p = false
	default:
		return errors.New("want true, false, 1 or 0")
	}
	return nil
}

// assignList takes a YAML list or comma separated text.
func (s setting) assignList(p *[]string, v any) error {
	if v == "" && s.optional {
		*p = nil
		return nil
	}
	var parts []string
	switch v := v.(type) {
	case string:
		parts = strings.Split(v, ",")
	case []any:
		for _, e := range v {
			text, ok := e.(string)
			if !ok {
				return fmt.Errorf("want a list of text, not %s in it", show(e))
			}
			parts = append(parts, text)
		}
	default:
		return errors.New("want a list or comma separated text")
	}
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	if (len(parts) == 0 && !s.optional) || slices.Contains(parts, "") {
		return errors.New("it has an empty entry")
	}
	*p = parts
	return nil
}

// value returns the setting's value in force in the form it would be written in: an integer, a
// boolean or text.
func (s setting) value(c *Config) any {
	switch p := s.at(c).(type) {
	case *int:
		return *p
	case *bool:
		return *p
	case *[]string:
		return strings.Join(*p, ",")
	case *string:
		return *p
	}
	return nil
}

// show quotes text and prints everything else as it is.
func show(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	return fmt.Sprint(v)
}
