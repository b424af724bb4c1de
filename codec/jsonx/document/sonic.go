//go:build !stdjson && (amd64 || arm64) && !go1.28

package document

import (
	"reflect"
	"strconv"
	"unsafe"

	"github.com/bytedance/sonic"

	"trunkline/codec/jsonx"
)

// native decodes without folding case and without validating again what a strict check passed.
var native = sonic.Config{CaseSensitive: true, NoValidateJSONSkip: true}.Froze()

// Decoder picks the members of documents whose names it knows. It is immutable.
type Decoder struct {
	names *jsonx.Names
	shape reflect.Type // a struct of one raw value for each name
}

// NewDecoder returns a decoder for names, which consist of ASCII letters, digits and underscores.
// It allocates and makes code: it is for start-up.
func NewDecoder(names *jsonx.Names) *Decoder {
	fields := make([]reflect.StructField, names.Len())
	for i := range fields {
		fields[i] = reflect.StructField{
			Name: "F" + strconv.Itoa(i),
			Type: reflect.TypeFor[sonic.NoCopyRawMessage](),
			Tag:  reflect.StructTag(`json:"` + names.Name(i) + `"`),
		}
	}
	d := &Decoder{names: names, shape: reflect.StructOf(fields)}
	d.Decode([]byte("{}"), make([]jsonx.Member, names.Len())) // makes the code
	return d
}

// decode fills out, which is clear. The raw values are part of doc.
func (d *Decoder) decode(doc []byte, out []jsonx.Member) error {
	v := reflect.New(d.shape)
	// sonic takes strings without a copy and bytes with one. Nothing is written to doc.
	text := unsafe.String(unsafe.SliceData(doc), len(doc))
	if err := native.UnmarshalFromString(text, v.Interface()); err != nil {
		return err
	}
	// The struct is its fields of one type, side by side.
	for i, raw := range unsafe.Slice((*sonic.NoCopyRawMessage)(v.UnsafePointer()), len(out)) {
		if raw != nil {
			out[i] = memberOf(raw)
		}
	}
	return nil
}
