package method

//go:generate go test -run ^(TestSchemas|TestReference|TestReferenceOfErrors)$ . -update

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/schemas.txt")

// TestSchemas compares the schemas of all tools with those that were checked by hand against
// threads §3.2 and §4.
func TestSchemas(t *testing.T) {
	const golden = "testdata/schemas.txt"
	var b bytes.Buffer
	for i := range Rows {
		r := &Rows[i]
		for _, s := range []struct {
			name string
			json []byte
		}{{"input", r.InputSchema()}, {"output", r.OutputSchema()}} {
			if !json.Valid(s.json) {
				t.Errorf("%s of %s is not JSON: %s", s.name, r.Name, s.json)
			}
			for _, refused := range []string{`"const"`, `"uniqueItems"`, `"$ref"`, `"description":""`} {
				if bytes.Contains(s.json, []byte(refused)) {
					t.Errorf("%s of %s has %s: %s", s.name, r.Name, refused, s.json)
				}
			}
			if described, named := bytes.Count(s.json, []byte(`"description":"`)),
				bytes.Count(s.json, []byte(`:{"type":`)); r.Title == "" || described < named-2 {
				t.Errorf("%s of %s: %d of %d properties are described: %s", s.name, r.Name, described, named, s.json)
			}
			b.WriteString(r.Name + " " + s.name + "\n")
			b.Write(s.json)
			b.WriteByte('\n')
		}
	}
	if *update {
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("the schemas differ from %s:\n%s", golden, b.Bytes())
	}
}
