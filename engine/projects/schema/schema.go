// Package schema has the JSON Schemas of all messages of projects (exacta §3.8), in the dialect
// 2020-12: of the envelopes, of the payload and the result of each command, of the payload of each
// event, and of the error object. Members that no schema names are allowed.
//
// A file has the name of its schema with dots: command:Build:result is command.Build.result.json.
// The files are made of a table in the tests of this package; go generate writes them again.
package schema

import (
	"embed"
	"slices"
	"strings"
)

//go:embed *.json
var files embed.FS

// base is how the $id of each schema begins (exacta §3.8).
const base = "urn:exacta:ipc:1.0:"

const extension = ".json"

// Names returns the names of all schemas in order: what their $id has behind base.
func Names() []string {
	entries, _ := files.ReadDir(".") // it is there
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.ReplaceAll(strings.TrimSuffix(e.Name(), extension), ".", ":"))
	}
	slices.Sort(names)
	return names
}

// File returns the name of the file of a schema.
func File(name string) string { return strings.ReplaceAll(name, ":", ".") + extension }

// Lookup returns a schema by its name or its $id.
func Lookup(name string) (text []byte, ok bool) {
	text, err := files.ReadFile(File(strings.TrimPrefix(name, base)))
	return text, err == nil
}
