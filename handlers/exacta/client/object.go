package client

import "trunkline/codec/jsonx"

// Object is the text of an object in a message that was checked. What is missing or of another type
// is read as empty.
type Object []byte

// Get returns the value of a member; its Kind is End where there is none.
func (o Object) Get(name string) jsonx.Value {
	var out [1]jsonx.Value
	jsonx.Pick(o, []string{name}, out[:])
	return out[0]
}

// Text returns a string. It shares no memory with the message.
func (o Object) Text(name string) string {
	text, _ := o.Get(name).Text()
	return string(text)
}

// Int returns an integer.
func (o Object) Int(name string) int64 {
	v := o.Get(name)
	if v.Kind != jsonx.Number {
		return 0
	}
	n, _ := jsonx.ParseInt(v.Raw)
	return n
}

// True reports whether a member is true.
func (o Object) True(name string) bool { return o.Get(name).Kind == jsonx.True }

// Object returns an object.
func (o Object) Object(name string) Object {
	v := o.Get(name)
	if v.Kind != jsonx.ObjectStart {
		return nil
	}
	return v.Raw
}

// Texts returns an array of strings. They share no memory with the message.
func (o Object) Texts(name string) []string {
	var out []string
	it := jsonx.OpenArray(o.Get(name).Raw)
	for v, ok := it.Next(); ok; v, ok = it.Next() {
		if text, ok := v.Text(); ok {
			out = append(out, string(text))
		}
	}
	return out
}

// Objects returns an array of objects.
func (o Object) Objects(name string) []Object {
	var out []Object
	it := jsonx.OpenArray(o.Get(name).Raw)
	for v, ok := it.Next(); ok; v, ok = it.Next() {
		if v.Kind == jsonx.ObjectStart {
			out = append(out, v.Raw)
		}
	}
	return out
}
