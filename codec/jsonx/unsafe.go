package jsonx

import "unsafe"

// The only two conversions of this package that the compiler does not check. Neither result is ever
// written to, kept, or returned to a caller.

// lend returns the bytes of s without a copy. A string header is the first two words of a slice
// header, so both kinds of s are read as a string.
func lend[T ~string | ~[]byte](s T) []byte {
	str := *(*string)(unsafe.Pointer(&s))
	return unsafe.Slice(unsafe.StringData(str), len(str))
}

// asString returns b as a string without a copy, for functions that take only strings.
func asString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
