package jsonx

import "strconv"

// Builder is an object in the making: the text from its brace on, behind whatever was before it
// in the buffer. Each method appends one member and returns the result; it allocates only if the
// buffer has no room. It is for objects whose members are few: hot paths append constants.
type Builder []byte

// Build begins an object at the end of dst.
func Build(dst []byte) Builder { return append(dst, '{') }

// Name appends the name of a member. Its value must follow, as JSON text.
func (b Builder) Name(name string) Builder {
	b = append(append(AppendComma(b), '"'), name...)
	return append(b, '"', ':')
}

// Text appends a member that is a string.
func (b Builder) Text(name, value string) Builder { return AppendString(b.Name(name), value) }

// Bytes is Text for bytes.
func (b Builder) Bytes(name string, value []byte) Builder {
	return AppendString(b.Name(name), value)
}

// Texts appends a member that is an array of strings.
func (b Builder) Texts(name string, values []string) Builder {
	b = append(b.Name(name), '[')
	for _, v := range values {
		b = AppendString(AppendComma(b), v)
	}
	return append(b, ']')
}

// Int appends a member that is an integer.
func (b Builder) Int(name string, value int64) Builder {
	return strconv.AppendInt(b.Name(name), value, 10)
}

// Bool appends a member that is true or false.
func (b Builder) Bool(name string, value bool) Builder {
	return strconv.AppendBool(b.Name(name), value)
}

// Raw appends a member whose value is JSON text already.
func (b Builder) Raw(name string, value []byte) Builder { return append(b.Name(name), value...) }

// End appends the closing brace.
func (b Builder) End() []byte { return append(b, '}') }

// AppendComma appends a comma unless dst ends in an opening bracket or brace, as it does before the
// first element of an array and the first member of an object.
func AppendComma[T ~[]byte](dst T) T {
	if last := dst[len(dst)-1]; last != '[' && last != '{' {
		dst = append(dst, ',')
	}
	return dst
}
