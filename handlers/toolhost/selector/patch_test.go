package selector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"trunkline/codec/jsonx"
)

func TestMerge(t *testing.T) {
	f := func(base, patch, want string) {
		t.Helper()
		before := strings.Clone(base)
		if got := string(merge([]byte(base), []byte(patch))); got != want {
			t.Errorf("%s with %s is %s, want %s", base, patch, got, want)
		}
		if base != before {
			t.Errorf("merging %s changed %s", patch, before)
		}
	}
	f(`{}`, `{}`, `{}`)
	f(`{}`, `{"a":1}`, `{"a":1}`)
	f(`{"a":1}`, `{}`, `{"a":1}`)
	f(`{ "a" : 1 }`, ``, `{ "a" : 1 }`)
	f(`{"a":1,"b":2,"c":3}`, `{"d":5,"b":4}`, `{"a":1,"b":4,"c":3,"d":5}`)
	// Shallow.
	f(`{"a":{"x":1,"y":2}}`, `{"a":{"x":3}}`, `{"a":{"x":3}}`)
	f(`{"a":{"x":1}}`, `{"a":null}`, `{"a":null}`)
	// The spelling of everything survives.
	f("{ \"n\" : 1.50e+02 , \"s\":\"\\u0041\\/\", \"o\": { \"k\" : [ 1 ] } }", `{"z": 1E0 }`, "{\"n\":1.50e+02,\"s\":\"\\u0041\\/\",\"o\":{ \"k\" : [ 1 ] },\"z\":1E0}")
	f(`{"a\u0062":1}`, `{"ab":2}`, `{"a\u0062":2}`)
	f(`{"ab":1}`, `{"a\u0062":2,"\u0063":3}`, `{"ab":2,"\u0063":3}`)
	// Repeated keys: the last value, once.
	f(`{"a":1,"b":2,"a":3}`, `{"a":9}`, `{"a":9,"b":2}`)
	f(`{"a":1,"b":2,"a":3}`, `{"c":9}`, `{"a":1,"b":2,"a":3,"c":9}`)
	f(`{}`, `{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}`)
	// Reserved keys, from the patch only.
	f(`{"a":1}`, `{"_system":1,"_system_prompt":2,"_queue":3,"_queued":4,"_meta":5,"_metadata":6}`, `{"a":1}`)
	f(`{"a":1}`, `{"\u005fsystem":1,"_sys":2,"system":3,"x_meta":4,"_Meta":5}`, `{"a":1,"_sys":2,"system":3,"x_meta":4,"_Meta":5}`)
	f(`{"_system":1}`, `{"_system":2,"b":3}`, `{"_system":1,"b":3}`)
	f(`{"":1}`, `{"":2}`, `{"":2}`)
}

// checkMerge compares with maps of the standard library.
func checkMerge(t rapid.TB, base, patch []byte) {
	oldBase, oldPatch := bytes.Clone(base), bytes.Clone(patch)
	got := merge(base, patch)
	if !bytes.Equal(base, oldBase) || !bytes.Equal(patch, oldPatch) {
		t.Fatalf("merging changed %q or %q", oldBase, oldPatch)
	}
	if !jsonx.Check(got, maxDepth).OK() {
		t.Fatalf("%q with %q is %q", base, patch, got)
	}
	var want, changes, have map[string]json.RawMessage
	for text, to := range map[*[]byte]*map[string]json.RawMessage{&oldBase: &want, &oldPatch: &changes, &got: &have} {
		if err := json.Unmarshal(*text, to); err != nil {
			t.Fatalf("cannot read %q: %v", *text, err)
		}
	}
	for key, value := range changes {
		if !strings.HasPrefix(key, "_system") && !strings.HasPrefix(key, "_queue") && !strings.HasPrefix(key, "_meta") {
			want[key] = value
		}
	}
	same := len(have) == len(want)
	for key, value := range want {
		same = same && bytes.Equal(have[key], value)
	}
	if !same {
		t.Fatalf("%q with %q is %q", base, patch, got)
	}
}

func TestMergeAgainstReference(t *testing.T) {
	key := rapid.SampledFrom([]string{"a", "b", "c", "_system", "_queue.x", "_metal", "_", "\u00e9", ""})
	value := rapid.SampledFrom([]string{"1", "1.0", "null", `"x"`, `{ "a" : 1 }`, "[ ]", "1e2"})
	object := rapid.Custom(func(t *rapid.T) []byte {
		var members []string
		for range rapid.IntRange(0, 6).Draw(t, "members") {
			members = append(members, fmt.Sprintf(" %s: %s", jsonx.AppendString(nil, key.Draw(t, "key")), value.Draw(t, "value")))
		}
		return []byte("{" + strings.Join(members, " ,") + "}")
	})
	rapid.Check(t, func(t *rapid.T) { checkMerge(t, object.Draw(t, "base"), object.Draw(t, "patch")) })
}
