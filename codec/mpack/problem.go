package mpack

// Problem is what is wrong with a payload's MessagePack; NoProblem is the zero value. It is a plain
// value so that reporting it costs nothing.
type Problem uint8

// The refusals of kernel-ipc §3.3.
const (
	NoProblem Problem = iota
	Truncated
	NeverUsed
	BinOrExt
	KeyNotString
	BadUTF8
	TooDeep
	TrailingBytes
)

var problemTexts = [...]string{
	NoProblem:     "",
	Truncated:     "Invalid msgpack: unexpected end of input",
	NeverUsed:     "Invalid msgpack: byte 0xc1 is never used",
	BinOrExt:      "Invalid msgpack: bin and ext types are not accepted",
	KeyNotString:  "Invalid msgpack: map key is not a string",
	BadUTF8:       "Invalid msgpack: string is not valid UTF-8",
	TooDeep:       "Invalid msgpack: nesting deeper than 512 levels",
	TrailingBytes: "Invalid msgpack: bytes after the top-level value",
}

// Text returns the message a peer gets for the problem. It does not allocate.
func (p Problem) Text() string { return problemTexts[p] }
