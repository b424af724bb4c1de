package schema

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the schemas")

// file returns the text of a schema.
func (r *row) file(t *testing.T) []byte {
	t.Helper()
	text := `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"` + base + r.name + `","title":"` + r.title + `",` + r.body + "}"
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), "", "  "); err != nil {
		t.Fatalf("%s: %v: %s", r.name, err, text)
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// TestFiles compares the files with the table: all of them, and no other.
func TestFiles(t *testing.T) {
	var names []string
	for _, r := range table() {
		names = append(names, r.name)
		want := r.file(t)
		if *update {
			if err := os.WriteFile(File(r.name), want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, ok := Lookup(r.name)
		again, _ := Lookup(base + r.name)
		if !ok || !bytes.Equal(got, want) || !bytes.Equal(again, got) {
			t.Errorf("%s is not what the table has: go generate writes it", File(r.name))
		}
	}
	slices.Sort(names)
	if have := Names(); !*update && (!slices.Equal(have, names) || len(have) != 44) {
		t.Errorf("%d schemas: %v, want %v", len(have), have, names)
	}
	if _, ok := Lookup("command:None:payload"); ok {
		t.Error("a schema of no command")
	}
}
