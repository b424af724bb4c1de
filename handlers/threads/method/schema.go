package method

import (
	"strconv"

	"trunkline/codec/jsonx"
)

// InputSchema returns the JSON schema of the method's input, built from its fields as threads §3.2
// has it.
func (r *Row) InputSchema() []byte { return appendSchema(nil, r.Name, r.In) }

// OutputSchema returns the JSON schema of the method's result.
func (r *Row) OutputSchema() []byte { return appendSchema(nil, r.Name, r.Out) }

// appendSchema appends the schema of an object with these fields, in their order. Some providers of
// models refuse const, uniqueItems and references; the checks are made all the same.
func appendSchema(dst []byte, method string, fields []Field) []byte {
	dst = append(dst, `{"type":"object","properties":{`...)
	for i := range fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsonx.AppendString(dst, fields[i].Name), ':')
		dst = fields[i].appendSchema(dst, method)
	}
	dst = append(dst, `},"required":[`...)
	first := true
	for i := range fields {
		if !fields[i].Required {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		dst, first = jsonx.AppendString(dst, fields[i].Name), false
	}
	return append(dst, `]}`...)
}

// Schemas of the types that have no variants.
const (
	textSchema = `{"type":"string","minLength":1}`
	idSchema   = `{"type":"string","minLength":1,"maxLength":256}`
)

// appendSchema appends the schema of one field.
func (f *Field) appendSchema(dst []byte, method string) []byte {
	switch f.Type {
	case ID:
		dst = append(dst, idSchema...)
	case Key:
		dst = appendLine(dst, maxKey)
	case Line:
		most := int64(maxLine)
		if f.Max > 0 {
			most = f.Max
		}
		dst = appendLine(dst, most)
	case Text:
		dst = append(dst, textSchema...)
	case Object:
		dst = append(dst, `{"type":"object"}`...)
	case Integer:
		dst = f.appendInteger(dst)
	case Bool, True:
		dst = append(dst, `{"type":"boolean"}`...)
	case Enum:
		dst = append(dst, `{"type":"string","enum":[`...)
		for i, v := range f.Values {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonx.AppendString(dst, v)
		}
		dst = append(dst, `]}`...)
	case IDs:
		dst = append(dst, `{"type":"array","items":`+idSchema+`,"minItems":1,"maxItems":256}`...)
	case Time:
		dst = append(dst, `{"type":"string","format":"date-time"}`...)
	case Texts:
		dst = append(dst, `{"type":"array","items":`+textSchema+`}`...)
	case Messages:
		dst = append(appendSchema(append(dst, `{"type":"array","items":`...), method, messageFields), '}')
	}
	if f.Default != "" {
		dst = append(append(append(dst[:len(dst)-1], `,"default":`...), f.Default...), '}')
	}
	help := helps[method+"."+f.Name]
	if help == "" {
		help = helps[f.Name]
	}
	return append(jsonx.AppendString(append(dst[:len(dst)-1], `,"description":`...), help), '}')
}

// appendLine appends the schema of a text of 1 to most characters.
func appendLine(dst []byte, most int64) []byte {
	dst = append(dst, `{"type":"string","minLength":1,"maxLength":`...)
	return append(strconv.AppendInt(dst, most, 10), '}')
}

// appendInteger appends the schema of an integer.
func (f *Field) appendInteger(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"type":"integer","minimum":`...), f.Min, 10)
	return append(strconv.AppendInt(append(dst, `,"maximum":`...), f.Max, 10), '}')
}
