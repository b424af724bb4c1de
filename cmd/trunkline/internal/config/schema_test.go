package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/knadh/koanf/parsers/yaml"
)

// TestSchemaTakesWhatLoadTakes asks an independent validator about files that Load takes and about
// those it does not.
func TestSchemaTakesWhatLoadTakes(t *testing.T) {
	text, err := json.Marshal(Schema())
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := func(file string, want bool) {
		t.Helper()
		m, err := yaml.Parser().Unmarshal([]byte(file))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := json.Marshal(m) // as an editor sees it
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(plain, &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); (err == nil) != want {
			t.Errorf("%q: %v, want valid %v", file, err, want)
		}
		_, loadErr := load(t, nil, nil, file)
		if (loadErr == nil) != want {
			t.Errorf("%q: Load: %v, want taken %v", file, loadErr, want)
		}
	}
	f("kernel: {loops: 3}", true)
	f("kernel.loops: 3", true)
	f("kernel:", true)
	f("kernel: {loops: 1024}", true)
	f("kernel: {loops: 1025}", false)
	f("kernel: {loops: -1}", false)
	f("kernel: {loop: 3}", false)
	f("kernal: {loops: 3}", false)
	f("kernel.loop: 3", false)
	f("kernel: {huge_pages: 3}", false)
	f("kernel: {listen_addr: ['127.0.0.1:0', 'unix:///s']}", true)
	f("kernel: {listen_addr: []}", false)
	f("http: {listen_addr: ''}", true)
	f("http: {listen_addr: []}", true)
	f("log: {level: debug}", true)
	f("log: {level: loud}", false)
	f("store: {dir: 7}", false)
}

// TestSchemaDescribesEverySetting: the default of each setting is valid by its own schema, and its
// meaning is there.
func TestSchemaDescribesEverySetting(t *testing.T) {
	for _, s := range table {
		text, err := json.Marshal(s.schema())
		if err != nil {
			t.Fatal(err)
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		resolved, err := schema.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
		if err != nil {
			t.Errorf("%s: %v", s.key, err)
			continue
		}
		if err := resolved.Validate(jsonValue(t, s.def)); err != nil {
			t.Errorf("%s: its default: %v", s.key, err)
		}
		if !strings.Contains(schema.Description, s.help) {
			t.Errorf("%s is described as %q", s.key, schema.Description)
		}
	}
}

func jsonValue(t *testing.T, v any) (out any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
