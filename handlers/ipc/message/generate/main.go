// Command generate writes what follows from the method table of kernel IPC: the types and codecs of
// handlers/ipc/message and the typed methods of handlers/ipc/client. It runs in handlers/ipc/message.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"github.com/tinylib/msgp/gen"
	"github.com/tinylib/msgp/parse"
	"github.com/tinylib/msgp/printer"
)

func main() {
	files, err := generate("..")
	for name, text := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join("..", name), text, 0o644)
		}
	}
	if err != nil {
		log.Fatal(err)
	}
}

// generate returns the generated files by their names below ipc, the folder of the method table.
func generate(ipc string) (map[string][]byte, error) {
	rows, err := readTable(filepath.Join(ipc, "methods.go"))
	if err != nil {
		return nil, err
	}
	shapes, err := os.ReadFile(filepath.Join(ipc, "message", "shapes.txt"))
	if err != nil {
		return nil, err
	}
	var all data
	for _, row := range rows {
		all.add(row)
	}
	all.Shapes = append(all.Shapes, parseShapes(string(shapes))...)
	files := map[string][]byte{}
	for name, text := range map[string]string{"message/types_gen.go": types, "client/methods_gen.go": methods} {
		var out bytes.Buffer
		if err := template.Must(template.New(name).Parse(text)).Execute(&out, &all); err != nil {
			return nil, err
		}
		if files[name], err = format.Source(out.Bytes()); err != nil {
			return nil, fmt.Errorf("cannot format %s: %w", name, err)
		}
	}
	files["message/codecs_gen.go"], err = codecs(files["message/types_gen.go"])
	return files, err
}

// codecs returns the MessagePack codecs of the types in source. Integers that are not negative take
// the unsigned classes (kernel-ipc §3.3), for which msgp.AppendInt64 has no mode.
func codecs(source []byte) ([]byte, error) {
	dir, err := os.MkdirTemp("", "codecs")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "types.go"), filepath.Join(dir, "codecs.go")
	if err := os.WriteFile(in, source, 0o600); err != nil {
		return nil, err
	}
	fs, err := parse.File(in, false, nil)
	if err != nil {
		return nil, err
	}
	if err := printer.PrintFile(out, fs, gen.Marshal|gen.Unmarshal|gen.Size); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	text = bytes.ReplaceAll(text, []byte("msgp.AppendInt64("), []byte("mpack.AppendInt("))
	return format.Source(bytes.Replace(text, []byte("import ("), []byte("import (\n\"trunkline/codec/mpack\""), 1))
}

// readTable returns the rows of the method table: their members that are literals, by name.
func readTable(file string) (rows []map[string]string, err error) {
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		return nil, err
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		row := map[string]string{}
		for _, e := range lit.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				switch v := kv.Value.(type) {
				case *ast.BasicLit:
					row[fmt.Sprint(kv.Key)], _ = strconv.Unquote(v.Value)
				case *ast.Ident:
					row[fmt.Sprint(kv.Key)] = v.Name
				}
			}
		}
		if row["service"] != "" {
			rows = append(rows, row)
		}
		return true
	})
	return rows, nil
}

// data is what the templates show.
type data struct {
	Shapes  []shape
	Methods []method
}

type shape struct {
	Name, Doc string
	Fields    []field
}

type field struct {
	Go, Type, Key, Doc string
	Omit               bool
}

// method is one typed method of the client, with the source text of its parameters and body.
type method struct{ Service, Name, Doc, Params, Body, Out string }

// add appends the request type of a row and, unless it opens a stream, its typed method. A request
// of one field has that field as its parameter.
func (d *data) add(row map[string]string) {
	name := row["name"]
	request := shape{Name: name, Doc: "is the body of " + row["service"] + "." + name + "."}
	for _, word := range strings.Fields(row["in"]) {
		f := parseField(strings.TrimSuffix(word, "!"))
		f.Omit = !strings.HasSuffix(word, "!") && f.Type != "msgp.Raw"
		request.Fields = append(request.Fields, f)
	}
	m := method{row["service"], name, row["doc"], "", "nil", strings.Replace(row["out"], "raw", "msgp.Raw", 1)}
	switch {
	case row["whole"] == "true":
		m.Params, m.Body = ", body msgp.Raw", "body"
	case len(request.Fields) == 1:
		f := &request.Fields[0]
		first, _, _ := strings.Cut(f.Key, "_")
		param := first + f.Go[len(first):]
		m.Params, m.Body = ", "+param+" "+f.Type, "&"+name+"{"+f.Go+": "+param+"}"
	case len(request.Fields) > 1:
		m.Params, m.Body = ", in "+name, "&in"
	}
	if len(request.Fields) > 0 && row["whole"] == "" {
		d.Shapes = append(d.Shapes, request)
	}
	if row["stream"] == "" {
		d.Methods = append(d.Methods, m)
	}
}

func parseShapes(text string) (list []shape) {
	for line := range strings.Lines(text) {
		words, doc, _ := strings.Cut(strings.TrimSpace(line), " -- ")
		switch {
		case words == "" || words[0] == '#':
		case line[0] != '\t':
			name, doc, _ := strings.Cut(words, " ")
			list = append(list, shape{Name: name, Doc: doc})
		default:
			s := &list[len(list)-1]
			for _, word := range strings.Fields(words) {
				f := parseField(word)
				f.Doc = doc
				s.Fields = append(s.Fields, f)
			}
		}
	}
	return list
}

var basic = map[string]string{"": "string", "str": "string", "int": "int64", "float": "float64", "raw": "msgp.Raw"}

// parseField reads one field of the notation in the package comment of message.
func parseField(word string) (f field) {
	word, f.Omit = strings.CutSuffix(word, "?")
	key, kind, _ := strings.Cut(word, ":")
	prefix := ""
	if f.Omit {
		prefix = "*"
	}
	if elem, ok := strings.CutPrefix(kind, "[]"); ok {
		prefix, kind = "[]", elem
	} else if elem, ok := strings.CutPrefix(kind, "map:"); ok {
		prefix, kind = "map[string]", elem
	}
	if name, ok := basic[kind]; ok {
		kind = name
	}
	f.Key, f.Type = key, prefix+kind
	for part := range strings.SplitSeq(strings.ToLower(key), "_") {
		switch part {
		case "pid", "id", "llm", "ms", "rpm", "rph":
			f.Go += strings.ToUpper(part)
		default:
			f.Go += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return f
}

const types = `// Code generated from the method table of kernel IPC and shapes.txt. DO NOT EDIT.

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
{{end}}`

const methods = `// Code generated from the method table of kernel IPC. DO NOT EDIT.

package client

import (
	"context"

	"github.com/tinylib/msgp/msgp"

	"trunkline/handlers/ipc/message"
)
{{range .Methods}}
// {{.Name}} calls {{.Service}}.{{.Name}}. {{.Doc}}
func (c *Conn) {{.Name}}(ctx context.Context{{.Params}}) (out {{.Out}}, err error) {
	err = c.invoke(ctx, "{{.Service}}", "{{.Name}}", {{.Body}}, &out)
	return out, err
}
{{end}}
// The maps of the protocol, as the package message describes them.
type (
{{- range .Shapes}}
	{{.Name}} = message.{{.Name}} // {{.Doc}}
{{- end}}
)
`
