package workers

import (
	"encoding/binary"
	"strings"
)

// Modules by hand, from their parts.

// leb is an unsigned number, sleb a signed one.
func leb(n int) string { return string(binary.AppendUvarint(nil, uint64(n))) }

func sleb(n int) string {
	var out []byte
	for {
		b := byte(n & 0x7f)
		if n >>= 7; n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return string(append(out, b))
		}
		out = append(out, b|0x80)
	}
}

// list is how many there are, and they.
func list(of ...string) string { return leb(len(of)) + strings.Join(of, "") }

func section(id int, of ...string) string {
	content := list(of...)
	return string(rune(id)) + leb(len(content)) + content
}

func text(s string) string { return leb(len(s)) + s }

// i32 is a constant.
func i32(n int) string { return "\x41" + sleb(n) }

// system is an import of the system's; parameters and results are i32.
type system struct {
	name            string
	params, results int
}

var (
	fdWrite  = system{"fd_write", 4, 1}
	procExit = system{"proc_exit", 1, 0}
)

// wasmOf is a module whose one function is code: exported as _start, or begun with the module if
// that is stated.
type wasmOf struct {
	code    string
	locals  int
	imports []system
	pages   int
	table   string // its type and limits
	data    string // at address 0
	begin   bool
	copies  int // of the function, uncalled
}

func (w wasmOf) String() string {
	types, imports := []string{"\x60\x00\x00"}, []string(nil)
	for i, s := range w.imports {
		types = append(types, "\x60"+text(strings.Repeat("\x7f", s.params))+text(strings.Repeat("\x7f", s.results)))
		imports = append(imports, text("wasi_snapshot_preview1")+text(s.name)+"\x00"+leb(i+1))
	}
	body := list()
	if w.locals > 0 {
		body = list(leb(w.locals) + "\x7f")
	}
	body = text(body + w.code + "\x0b")
	kinds, bodies := []string{"\x00"}, []string{body}
	for range w.copies {
		kinds, bodies = append(kinds, "\x00"), append(bodies, body)
	}
	out := "\x00asm\x01\x00\x00\x00" + section(1, types...) + section(2, imports...) + section(3, kinds...)
	if w.table != "" {
		out += section(4, w.table)
	}
	out += section(5, "\x00"+leb(max(w.pages, 1)))
	exports := []string{text("memory") + "\x02\x00"}
	if !w.begin {
		exports = append(exports, text("_start")+"\x00"+leb(len(imports)))
	}
	out += section(7, exports...)
	if w.begin {
		at := leb(len(imports))
		out += "\x08" + leb(len(at)) + at
	}
	out += section(10, bodies...)
	if w.data != "" {
		out += section(11, "\x00"+i32(0)+"\x0b"+text(w.data))
	}
	return out
}

// okData is a reply at address 16 and what fd_write needs to write it, which write does as function
// 0.
var okData = string(binary.LittleEndian.AppendUint32([]byte{16, 0, 0, 0}, uint32(len(okReply)))) + strings.Repeat("\x00", 8) + okReply

func write() string { return i32(1) + i32(0) + i32(1) + i32(8) + "\x10\x00\x1a" }

// fill sets n bytes of memory, which nothing interrupts.
func fill(n int) string { return i32(0) + i32(1) + i32(n) + "\xfc\x0b\x00" }

const wholeMemory = wasmPages << 16

// trapIf traps if the value before it is not 0.
const trapIf = "\x04\x40\x00\x0b"
