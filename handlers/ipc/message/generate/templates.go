package main

// templates are the generated Go files by their names below handlers/ipc.
var templates = map[string]string{
	"methods_gen.go": header + `

package ipc

import "trunkline/engine/kernel"

var methods = index([]method{
{{- range .Rows}}
	{
		service: "{{.Service}}", name: "{{.Name}}", handle: {{.Handler}},
		fields: []string{ {{range .Fields}}"{{.Key}}", {{end}}{{range .Hidden}}"{{.}}", {{end}} },
		{{- with .Hidden}} hidden: {{len .}}, {{end}}{{range .Flags}}{{.}}, {{end}}
		doc: "{{.Doc}}",
	},
{{- end}}
})

// extensions are the methods and fields that the reference implementation does not have; the last
// one is a field of all methods that change something.
var extensions = []string{ {{range .Extensions}}
	"{{.}}",
{{- end}}
	IdempotencyKey,
}
`,
	"rows_gen_test.go": header + `

package ipc

// allocLines are the allocs lines of the method table: request bodies, or the reason why there
// are none.
var allocLines = map[string]string{
{{- range .Rows}}
	"{{.Service}}.{{.Name}}": {{printf "%q" .Allocs}},
{{- end}}
}
`,
	"message/types_gen.go": header + `

package message

import "github.com/tinylib/msgp/msgp"

// A reply may not reserve more memory than its frame can hold.
//
//msgp:limit arrays:1048576 maps:1048576
{{range .Shapes}}
// {{.Name}} {{.Doc}}
type {{.Name}} struct {
{{- range .Fields}}
	{{- with .Doc}}
	// {{.}}
	{{- end}}
	{{.Go}} {{.Type}} ` + "`msg:\"{{.Key}}{{if .Omit}},omitempty{{end}}\"`" + `
{{- end}}
}
{{end}}`,
	"ipcclient/methods_gen.go": header + `

package ipcclient

import (
	"context"

	"github.com/tinylib/msgp/msgp"

	"trunkline/handlers/ipc/message"
)
{{range .Rows}}{{if .Reply}}
// {{.Name}} calls {{.Service}}.{{.Name}}. {{.Doc}}
func (c *Conn) {{.Name}}(ctx context.Context{{.Params}}) (out {{.Reply}}, err error) {
	err = c.invoke(ctx, "{{.Service}}", "{{.Name}}", {{.Body}}, &out)
	return out, err
}
{{end}}{{end}}
// The maps of the protocol, as the package message describes them.
type (
{{- range .Shapes}}
	{{.Name}} = message.{{.Name}} // {{.Doc}}
{{- end}}
)
`,
}

const header = "// Code generated from handlers/ipc/methods.txt. DO NOT EDIT."

// listings are the generated parts of the documentation, by page and name. A part stands between
// comments of its name.
var listings = map[string]map[string]string{
	"README.md": {
		"count":    `{{len .Rows}}`,
		"services": `{{range $i, $s := .Services}}{{if $i}}, {{end}}` + "`{{$s}}`" + ` ({{len ($.Of $s)}} methods){{end}}`,
	},
	"docs/kernel-ipc.md": {"methods": `{{template "table" (.Of "kernel" "commbus")}}`},
	"docs/envelope.md":   {"methods": `{{template "table" (.Of "engine" "orchestration")}}`},
	"docs/cluster.md": {"partitions": `
| method | served by |
|---|---|
{{range .Rows}}| ` + "`{{.Service}}.{{.Name}}`" + ` | {{if eq .To "first"}}Partition 0.{{else if eq .To "any"}}Any partition.` +
		`{{else if eq .To "envelope"}}` + "The partition of the `envelope_id`." + `{{else}}{{.ToDoc}}{{end}} |
{{end}}`},
}

const table = `{{define "table"}}
| method | fields | reply or stream message |
|---|---|---|
{{range .}}| ` + "`{{.Service}}.{{.Name}}`{{if .Ext}} **[ext]**{{end}}" + ` | {{range $i, $f := .Fields}}{{if $i}}, {{end}}` +
	"`{{$f.Key}}`" + `{{if $f.Ext}} **[ext]**{{end}}{{end}} | {{range $i, $k := .ReplyKeys}}{{if $i}}, {{end}}` + "`{{$k}}`" + `{{else}}the envelope{{end}} |
{{end}}{{end}}`
