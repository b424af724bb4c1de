package mpack

// Tuple reads the elements of a list that stand for the fields of a record. Bad stays set once an
// element is missing or not what it has to be: it is enough to look at it at the end. What Tuple
// returns points into the record.
type Tuple struct {
	List
	Bad bool
}

// OpenTuple checks that record is one value and returns its elements. Anything but a list has none.
func OpenTuple(record []byte) (t Tuple, p Problem) {
	var s Scanner
	if p = s.Check(record); p == NoProblem {
		t.List = OpenList(record)
	}
	return t, p
}

// Raw returns the whole encoding of the next element.
func (t *Tuple) Raw() []byte {
	raw, ok := t.Next()
	t.Bad = t.Bad || !ok
	return raw
}

// Of returns the next element, which has to be of a kind.
func (t *Tuple) Of(kind Kind) Value {
	v := ReadValue(t.Raw())
	if v.Kind != kind {
		t.Bad = true
		return Value{}
	}
	return v
}

// Optional is Of for an element that may be nil, which is a Value without a kind.
func (t *Tuple) Optional(kind Kind) Value {
	v := ReadValue(t.Raw())
	if v.Kind != kind {
		t.Bad = t.Bad || v.Kind != Nil
		return Value{}
	}
	return v
}

// Int returns an integer from least to most.
func (t *Tuple) Int(least, most int64) int64 {
	n := t.Of(Int).Int
	t.Bad = t.Bad || n < least || n > most
	return n
}

// Text returns the bytes of a string.
func (t *Tuple) Text() []byte { return t.Of(Str).Data }

// Bool returns the value of a bool.
func (t *Tuple) Bool() bool { return t.Of(Bool).Int != 0 }

// Whole reports whether all elements were read and none was bad.
func (t *Tuple) Whole() bool {
	_, more := t.Next()
	return !more && !t.Bad
}
