// Command generate writes what follows from the method table of kernel IPC,
// handlers/ipc/methods.txt: the table of the server, the types and codecs of handlers/ipc/message,
// the typed methods of handlers/ipc/ipcclient, and the lists of methods in the documentation.
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/tinylib/msgp/gen"
	"github.com/tinylib/msgp/parse"
	"github.com/tinylib/msgp/printer"
)

func main() {
	root := filepath.Join("..", "..", "..")
	files, err := generate(root)
	for name, text := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(root, name), text, 0o644)
		}
	}
	if err != nil {
		log.Fatal(err)
	}
}

// generate returns the generated files by their names below root.
func generate(root string) (map[string][]byte, error) {
	const ipc = "handlers/ipc/"
	text, err := os.ReadFile(filepath.Join(root, ipc, "methods.txt"))
	if err != nil {
		return nil, err
	}
	t, err := parseTable(string(text))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, text := range templates {
		if files[ipc+name], err = format.Source(t.execute(text)); err != nil {
			return nil, fmt.Errorf("cannot format %s: %w", name, err)
		}
	}
	if files[ipc+"message/codecs_gen.go"], err = codecs(files[ipc+"message/types_gen.go"]); err != nil {
		return nil, err
	}
	for page, parts := range listings {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			return nil, err
		}
		for name, part := range parts {
			between := regexp.MustCompile(`(?s)(<!-- ` + name + ` -->).*(<!-- /` + name + ` -->)`)
			if !between.Match(text) {
				return nil, fmt.Errorf("cannot find the comments %s in %s", name, page)
			}
			text = between.ReplaceAll(text, slices.Concat([]byte("${1}"), t.execute(part), []byte("${2}")))
		}
		files[page] = text
	}
	return files, nil
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

// tables is the parsed method table.
type tables struct {
	Rows   []*row
	Shapes []*shape // of requests, then of replies
}

type shape struct {
	Name, Doc string
	Fields    []field
}

type field struct {
	Go, Type, Key, Doc string
	Omit, Ext          bool
}

// row is one method. Params and Body are the source text of its typed call.
type row struct {
	Service, Name, Handler, Doc, Out, Allocs string
	To, ToDoc                                string // which partitions serve it
	Fields                                   []field
	Hidden                                   []string // keys of fields that only nodes send
	Flags                                    []string // members of the server's row
	Ext, Stream                              bool
	Params, Body, Reply                      string
	ReplyKeys                                []string
}

// members are what the words of an is line set in a row of the server.
var members = map[string]string{
	"durable": "durability: Durable", "lazy": "durability: Lazy", "reads": "reads: true", "several": "several: true",
	"whole": "whole: true", "stream": "stream: true", "ids": "need: kernel.NeedIDs",
	"queue": "need: kernel.NeedIDs | kernel.NeedQueue",
}

// destinations are the words of a to line that are no field.
var destinations = map[string]string{"first": "ToFirst", "any": "ToAny", "envelope": "ToEnvelope", "several": "ToSeveral"}

func parseTable(text string) (*tables, error) {
	var t tables
	var replies []*shape
	for line := range strings.Lines(text) {
		words, doc, _ := strings.Cut(strings.TrimSpace(line), " -- ")
		name, rest, _ := strings.Cut(words, " ")
		service, method, isRow := strings.Cut(name, ".")
		switch {
		case name == "" || line[0] == '#':
		case line[0] != '\t' && isRow:
			handler := strings.ToLower(method[:1]) + method[1:]
			t.Rows = append(t.Rows, &row{Service: service, Name: method, Handler: handler, Doc: doc})
		case line[0] != '\t':
			replies = append(replies, &shape{Name: name, Doc: rest})
		case len(replies) > 0:
			s := replies[len(replies)-1]
			s.Fields = append(s.Fields, parseFields(words, doc)...)
		default:
			if err := t.Rows[len(t.Rows)-1].parse(name, rest, doc); err != nil {
				return nil, err
			}
		}
	}
	for _, r := range t.Rows {
		if r.To == "" {
			return nil, fmt.Errorf("%s.%s has no line to: which partitions of a cluster serve it", r.Service, r.Name)
		}
		isKey := func(f field) bool { return f.Key == r.To }
		if destinations[r.To] == "" && !slices.ContainsFunc(r.Fields, isKey) {
			return nil, fmt.Errorf("%s.%s goes to %s, which is no field of it", r.Service, r.Name, r.To)
		}
		if s := r.request(); s != nil {
			t.Shapes = append(t.Shapes, s)
		}
		for _, s := range replies {
			if s.Name == r.Out {
				for _, f := range s.Fields {
					r.ReplyKeys = append(r.ReplyKeys, f.Key)
				}
			}
		}
	}
	t.Shapes = append(t.Shapes, replies...)
	return &t, nil
}

func (r *row) parse(key, value, doc string) error {
	switch key {
	case "in":
		for word := range strings.FieldsSeq(value) {
			if hidden, ok := strings.CutPrefix(word, "~"); ok {
				r.Hidden = append(r.Hidden, parseField(hidden, "").Key)
			} else {
				r.Fields = append(r.Fields, parseField(word, ""))
			}
		}
	case "out":
		r.Out = value
	case "allocs":
		r.Allocs = value
	case "to":
		r.To, r.ToDoc = value, doc
		if to, ok := destinations[value]; ok {
			r.Flags = append(r.Flags, "to: "+to)
		} else {
			r.Flags = append(r.Flags, "to: ToKey", `key: "`+value+`"`)
			r.ToDoc = "The partition of its `" + value + "`."
		}
	case "is":
		for _, word := range strings.Fields(value) {
			r.Ext, r.Stream = r.Ext || word == "ext", r.Stream || word == "stream"
			if members[word] != "" && (word != "ids" || !strings.Contains(value, "queue")) {
				r.Flags = append(r.Flags, members[word])
			}
		}
	default:
		return fmt.Errorf("cannot read %q of %s.%s", key, r.Service, r.Name)
	}
	return nil
}

// request sets the typed call of a row and returns the type of its body, nil for none. A request of
// one field has that field as its parameter.
func (r *row) request() *shape {
	s := &shape{Name: r.Name, Doc: "is the body of " + r.Service + "." + r.Name + ".", Fields: r.Fields}
	if !r.Stream {
		r.Reply = strings.Replace(r.Out, "raw", "msgp.Raw", 1)
	}
	for i, f := range s.Fields {
		word, always := strings.CutSuffix(f.Type, "!")
		s.Fields[i].Type, s.Fields[i].Omit = word, !always && word != "msgp.Raw"
	}
	switch len(s.Fields) {
	case 0:
		r.Body = "nil"
		return nil
	case 1:
		f := &s.Fields[0]
		if f.Type == "body" {
			r.Params, r.Body = ", body msgp.Raw", "body"
			return nil
		}
		first, _, _ := strings.Cut(f.Key, "_")
		param := first + f.Go[len(first):]
		r.Params, r.Body = ", "+param+" "+f.Type, "&"+r.Name+"{"+f.Go+": "+param+"}"
	default:
		r.Params, r.Body = ", in "+r.Name, "&in"
	}
	return s
}

var basic = map[string]string{"": "string", "str": "string", "int": "int64", "float": "float64", "raw": "msgp.Raw"}

func parseFields(words, doc string) (list []field) {
	for word := range strings.FieldsSeq(words) {
		list = append(list, parseField(word, doc))
	}
	return list
}

// parseField reads one field in the notation of methods.txt; a ! stays at the end of Type.
func parseField(word, doc string) field {
	f := field{Doc: doc}
	word, f.Ext = strings.CutPrefix(word, "+")
	word, f.Omit = strings.CutSuffix(word, "?")
	word, always := strings.CutSuffix(word, "!")
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
	if always {
		f.Type += "!"
	}
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

// execute fills a template; a fault in it is a fault of this program.
func (t *tables) execute(text string) []byte {
	var out bytes.Buffer
	parsed := template.Must(template.New("").Parse(table + text))
	if err := parsed.Execute(&out, t); err != nil {
		log.Fatal(err)
	}
	return out.Bytes()
}

// Services returns the names of the services in the order of the table.
func (t *tables) Services() (names []string) {
	for _, r := range t.Rows {
		if !slices.Contains(names, r.Service) {
			names = append(names, r.Service)
		}
	}
	return names
}

// Of returns the methods of some services.
func (t *tables) Of(services ...string) (rows []*row) {
	for _, r := range t.Rows {
		if slices.Contains(services, r.Service) {
			rows = append(rows, r)
		}
	}
	return rows
}

// Extensions returns the methods and fields that the reference implementation does not have.
func (t *tables) Extensions() (names []string) {
	for _, r := range t.Rows {
		name := r.Service + "." + r.Name
		if r.Ext {
			names = append(names, name)
		}
		for _, f := range r.Fields {
			if f.Ext {
				names = append(names, name+"."+f.Key)
			}
		}
	}
	return names
}
