//go:build stdjson || !(amd64 || arm64) || go1.28

package document

import (
	"encoding/json"

	"trunkline/codec/jsonx"
)

// Decoder picks the members of documents whose names it knows. It is immutable.
type Decoder struct {
	names *jsonx.Names
}

// NewDecoder returns a decoder for names, which consist of ASCII letters, digits and underscores.
func NewDecoder(names *jsonx.Names) *Decoder { return &Decoder{names} }

// decode fills out, which is clear. It decodes into a map, because fields of structs fold case. The
// raw values are copies.
func (d *Decoder) decode(doc []byte, out []jsonx.Member) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(doc, &members); err != nil {
		return err
	}
	for i := range out {
		out[i] = memberOf(members[d.names.Name(i)])
	}
	return nil
}
