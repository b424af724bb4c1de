// Package jsonx reads and writes JSON text by scanning it in place: no tree, no reflection, no
// allocation, the standard library only.
//
//	Check            is this exactly one JSON value? (RFC 8259, valid UTF-8, bounded nesting)
//	Names.Scan       the same, and picks known members in one pass; reports repeated ones
//	Strict           both for documents whose every reader must understand the same
//	Strict.Pick      the same for objects as most programs write them, in a third of the time
//	Canonical        writes JSON in the one form of its meaning into a hash
//	Object, Array    iterate over the members of one container in checked text
//	Pick             the members with some names, in one pass over checked text
//	ValueOf          returns the kind of value of a checked text
//	Walker           pulls tokens out of checked text, with member counts if wanted
//	ParseNumber      reads a number as int64, uint64 or float64; ParseInt is the fast path
//	Integral         reads a number whose value is an integer, however it is spelled
//	AppendUnescaped  undoes the escapes of a string
//	AppendString     writes a string
//	Builder          writes an object, member by member
//
// Text from a peer goes through Check, Scan or Strict first; all the others that read rely on that.
// Given text that was not checked they still neither panic nor loop nor write invalid UTF-8 that
// was not in the text, but what they return means nothing.
//
// Everything is iterative: nesting is a bit stack of MaxDepth bits, so a hostile text costs time
// proportional to its length and no stack. Only Strict and Canonical have scratch memory, which
// grows with the keys of a text.
//
// Not implemented, on purpose: comments, trailing commas, NaN and Infinity, a leading byte order
// mark, decoding into Go types, which package document does, and but for Strict duplicate-key
// detection beyond the names of a Scan (kernel-ipc forwards payloads byte for byte, so which key
// wins is the reader's business).
package jsonx
