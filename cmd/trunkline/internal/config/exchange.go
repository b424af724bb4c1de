package config

import (
	"fmt"
	"strings"
)

// The settings that the commands of the envelope exchange take.
const (
	keyMaxBody    = "http.max_body_bytes"
	keyStageOrder = "http.default_stage_order"
)

// LoadExchange reads what the commands of the envelope exchange take from the settings:
// MaxBodyBytes and DefaultStageOrder, from sets (the values of --set), else from the environment,
// else from the defaults; everything else is left zero.
//
// It is not Load, for two reasons. These commands are called once per step of a pipeline and must
// start fast; and what they answer must not depend on a file that happens to lie in the caller's
// working directory, or on variables meant for a server.
func LoadExchange(sets []string, lookup func(string) (string, bool)) (HTTP, error) {
	var c Config
	for _, key := range []string{keyMaxBody, keyStageOrder} {
		s, _ := find(key)
		v, from := s.def, Origin{Layer: layerDefault}
		if text, ok := lookup(envName(key)); ok {
			v, from = text, Origin{layerEnv, envName(key)}
		}
		if text, ok := lastSet(sets, key); ok {
			v, from = text, Origin{layerFlag, "--" + flagSet}
		}
		if err := s.assign(&c, v); err != nil {
			return HTTP{}, fmt.Errorf("cannot use %s = %s (%s): %w", key, show(v), from, err)
		}
	}
	for _, pair := range sets {
		key, _, ok := strings.Cut(pair, "=")
		if !ok || key != keyMaxBody && key != keyStageOrder {
			return HTTP{}, fmt.Errorf("cannot use --%s %q: this command takes %s=N and %s=LIST", flagSet, pair, keyMaxBody, keyStageOrder)
		}
	}
	if p := checkStages(c.HTTP.DefaultStageOrder); p != nil {
		return HTTP{}, p
	}
	return c.HTTP, nil
}

// lastSet returns the value of the last pair for key: as with all flags, the last one wins.
func lastSet(sets []string, key string) (value string, ok bool) {
	for _, pair := range sets {
		if k, v, isPair := strings.Cut(pair, "="); isPair && k == key {
			value, ok = v, true
		}
	}
	return value, ok
}
