package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"trunkline/cmd/trunkline/internal/cli"
)

// assign parses v as the type of the setting's field, checks its range and stores it.
func (s setting) assign(c *Config, v any) error {
	switch p := s.at(c).(type) {
	case *int, *int64, *time.Duration:
		n, err := s.integer(v)
		_, unit := s.split()
		reflect.ValueOf(p).Elem().SetInt(int64(n) * unit)
		return err
	case *bool:
		return assignBool(p, v)
	case *[]string:
		return s.assignList(p, v)
	case *string:
		return s.assignString(p, v)
	case *[]Webhook:
		return assignWebhooks(p, v)
	}
	return fmt.Errorf("BUG: no parser for setting %s", s.key)
}

func (s setting) integer(v any) (int, error) {
	n, ok := v.(int)
	if str, isText := v.(string); isText {
		parsed, err := strconv.Atoi(str)
		n, ok = parsed, err == nil
	}
	if !ok || n < s.min || n > s.max {
		return 0, fmt.Errorf("want an integer from %d to %d", s.min, s.max)
	}
	return n, nil
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
	case true, "true", "1", 1:
		*p = true
	case false, "false", "0", 0:
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

// Argv reads a command from the setting key, a JSON array of texts.
func Argv(key, text string) (list []string, err error) {
	if err = json.Unmarshal([]byte(text), &list); err == nil && len(list) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use %s = %q: want a JSON array of texts: %w", key, text, err)
	}
	return list, nil
}

// value returns the setting's value in force in the form it would be written in: an integer, a
// boolean or text.
func (s setting) value(c *Config) any {
	switch p := s.at(c).(type) {
	case *int, *int64, *time.Duration:
		_, unit := s.split()
		return int(reflect.ValueOf(p).Elem().Int() / unit)
	case *bool:
		return *p
	case *[]string:
		return strings.Join(*p, ",")
	case *string:
		return *p
	case *[]Webhook:
		return showWebhooks(*p)
	}
	return nil
}

// show quotes text and prints everything else as it is, a whole floating-point number with its
// fraction.
func show(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case float64:
		if text := fmt.Sprint(v); strings.Trim(text, "-0123456789") == "" {
			return text + ".0"
		}
	}
	return fmt.Sprint(v)
}

// nearest returns the known key closest to key by edit distance; the section may be missing or
// wrong. The first in table order wins a tie.
func nearest(key string) string {
	best, bestDist := "", -1
	for _, s := range table {
		_, name, _ := strings.Cut(s.key, delim)
		d := min(cli.Distance(key, s.key), 1+cli.Distance(key, name))
		if _, tail, ok := strings.Cut(key, delim); ok {
			d = min(d, 2+cli.Distance(tail, name))
		}
		if bestDist < 0 || d < bestDist {
			best, bestDist = s.key, d
		}
	}
	return best
}

// sectionEdits is how many edits away from a section the first word of a variable still counts as a
// misspelling of it.
const sectionEdits = 2

// nearSection reports whether the section of key is one of the table, or a misspelling of one.
func nearSection(key string) bool {
	word, _, _ := strings.Cut(key, delim)
	for _, s := range table {
		section, _, _ := strings.Cut(s.key, delim)
		if cli.Distance(word, section) <= sectionEdits {
			return true
		}
	}
	return false
}
