// Package message holds the maps of kernel IPC as Go types with MessagePack codecs: the body of
// every request, named like its method, and every reply and stream message. Server and client
// share them. Types and codecs are generated from the method table (handlers/ipc/methods.go) and
// from shapes.txt; `make generate` writes them.
//
// # Notation
//
// A field is written key:kind, and a key alone is a string. The kinds are str, int, float, bool, raw
// (one encoded value), the name of a shape, and []kind or map:kind of these. A field ending in ? is a
// pointer, absent when nil. The zero value of a request's field is left out, unless the field ends
// in !, and the members of a shape are always there, unless they end in ?.
package message

//go:generate go run ./generate
