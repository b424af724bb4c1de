// Package document decodes whole documents with the JSON library of the build: sonic where it has
// native code, which it makes at run time, else encoding/json, which the tag stdjson chooses
// anywhere. It is the only package that knows either library, and it is one of its own because
// sonic costs a program that links it some milliseconds at its start.
//
// A document passes jsonx.Strict first. Given one that did not a Decoder neither panics nor
// recurses with its nesting, but what it returns is undefined: sonic skips without validation.
package document

import (
	"bytes"
	"errors"

	"trunkline/codec/jsonx"
)

var errNotObject = errors.New("document: not an object")

// Decode sets out[i] to the value of name i in doc, a document that passed jsonx.Strict and is an
// object. Names are compared byte for byte, other members are ignored. The members are as
// jsonx.Names.Scan sets them, but for their bytes: those may be a copy, or part of doc. out must
// hold as many members as there are names; after an error all are absent.
func (d *Decoder) Decode(doc []byte, out []jsonx.Member) error {
	out = out[:d.names.Len()]
	clear(out)
	if jsonx.ValueOf(doc).Kind != jsonx.ObjectStart {
		return errNotObject
	}
	if err := d.decode(doc, out); err != nil {
		clear(out)
		return err
	}
	return nil
}

// memberOf returns the member whose value is raw, Absent for none.
func memberOf(raw []byte) jsonx.Member {
	v := jsonx.ValueOf(raw)
	if v.Kind != jsonx.String || len(v.Raw) < 2 {
		return jsonx.Member{Kind: v.Kind, Raw: v.Raw}
	}
	end := len(v.Raw) - 1
	text := v.Raw[1:end:end]
	return jsonx.Member{Kind: v.Kind, Raw: text, Escaped: bytes.IndexByte(text, '\\') >= 0}
}
