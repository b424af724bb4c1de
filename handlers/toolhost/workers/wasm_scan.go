package workers

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// What a module may have. The compiler allocates what the counts in a module ask for, and its time grows with the third power of a
// function's shape: neither is left to the module.
const (
	// MaxModuleBytes is the largest module that is looked at. Much of what compilers make is names and
	// debug information.
	MaxModuleBytes = 16 << 20
	// maxTypes and maxTypeValues bound the function types, and the parameters and results of each.
	maxTypes, maxTypeValues = 4096, 128
	maxImports              = 1024
	maxFunctions            = 1 << 16
	// maxTableEntries is the size of the one table that a module may have: half a MiB.
	maxTableEntries = 1 << 16
	maxGlobals      = 4096
	maxExports      = 1 << 16
	// maxElements bounds the entries of all segments together, and maxSegments the segments of elements.
	maxElements, maxSegments = 1 << 16, 4096
	// maxDataSegments is that high because Go's linker makes a segment of every 32 bytes or so.
	maxDataSegments = 1 << 19
)

// The sections of a module, and the kinds of what is imported.
const (
	sectionCustom, sectionType, sectionImport, sectionFunction, sectionTable, sectionMemory = 0, 1, 2, 3, 4, 5
	sectionGlobal, sectionExport, sectionStart, sectionElement, sectionCode, sectionData    = 6, 7, 8, 9, 10, 11
	sectionDataCount                                                                        = 12
)

const wasmHeader = "\x00asm\x01\x00\x00\x00"

// signature is how many values a function takes and leaves.
type signature struct{ params, results int32 }

// moduleScan reads a module before the compiler does: what is refused here costs no more than its length. It is strict in what it
// must count and leaves every other rule to the compiler.
type moduleScan struct {
	types     []signature
	functions []uint32 // the type of each, those imported first
	imported  int
	elements  int
	out       []byte // the module as the compiler is to see it
	body      bodyScan
}

// scanned is a module that may be given to the compiler.
type scanned struct {
	code      []byte // without custom sections, with a table that cannot grow beyond its limit
	interpret bool   // because compiling it takes too long, or what it does then
}

// scanModule looks at a module and returns it as the compiler is to see it. It allocates a copy and little for each type,
// function and open block, and its time grows with the length alone.
func scanModule(code []byte) (scanned, error) {
	if !bytes.HasPrefix(code, []byte(wasmHeader)) {
		return scanned{}, fmt.Errorf("%w: no WebAssembly header", errModule)
	}
	s := &moduleScan{out: append(make([]byte, 0, len(code)+16), wasmHeader...)}
	c := &cursor{b: code[len(wasmHeader):]}
	last := 0
	for len(c.b) > 0 && c.err == nil {
		id := int(c.byte())
		content := c.take(c.u32())
		if c.err != nil || id == sectionCustom {
			continue
		}
		if at := sectionOrder(id); at <= last {
			c.fail("section %d is unknown, or not in order", id)
		} else {
			last = at
		}
		if c.err == nil {
			c.err = s.section(id, content)
		}
	}
	if c.err != nil {
		return scanned{}, fmt.Errorf("%w: %w", errModule, c.err)
	}
	interpret := s.body.bulky || s.body.cost > maxCost
	if interpret && s.body.memory > maxMemory {
		return scanned{}, fmt.Errorf("%w: its functions are too many and too complex", errModule)
	}
	return scanned{code: s.out, interpret: interpret}, nil
}

// sectionOrder returns the place of a section, 0 if there is no such: the number of the data segments comes before the code.
func sectionOrder(id int) int {
	switch {
	case id == sectionDataCount:
		return 2*sectionCode - 1
	case id > sectionDataCount:
		return 0
	}
	return 2 * id
}

// section looks at one section and appends it.
func (s *moduleScan) section(id int, content []byte) error {
	c := &cursor{b: content}
	switch id {
	case sectionType:
		s.readTypes(c)
	case sectionImport:
		s.readImports(c)
	case sectionFunction:
		for range c.count(maxFunctions, "functions") {
			s.functions = append(s.functions, c.u32())
		}
	case sectionTable:
		content = s.readTable(c)
	case sectionMemory:
		s.readMemory(c)
	case sectionGlobal:
		for range c.count(maxGlobals, "globals") {
			c.take(2)
			s.body.constant(c)
		}
	case sectionExport:
		for range c.count(maxExports, "exports") {
			c.take(c.u32())
			c.byte()
			c.u32()
		}
	case sectionStart, sectionDataCount:
		c.u32()
	case sectionElement:
		s.readElements(c)
	case sectionCode:
		s.readCode(c)
	case sectionData:
		s.readData(c)
	}
	if c.err == nil && len(c.b) > 0 {
		c.fail("section %d is longer than what is in it", id)
	}
	s.out = append(s.out, byte(id))
	s.out = binary.AppendUvarint(s.out, uint64(len(content)))
	s.out = append(s.out, content...)
	return c.err
}

func (s *moduleScan) readTypes(c *cursor) {
	for range c.count(maxTypes, "types") {
		if c.byte() != 0x60 {
			c.fail("a type that is not one of functions")
		}
		params := c.count(maxTypeValues, "parameters")
		c.take(uint32(params))
		results := c.count(maxTypeValues, "results")
		c.take(uint32(results))
		s.types = append(s.types, signature{int32(params), int32(results)})
	}
}

// readImports takes functions alone: nothing else is there to be imported.
func (s *moduleScan) readImports(c *cursor) {
	s.imported = c.count(maxImports, "imports")
	for range s.imported {
		module := c.take(c.u32())
		name := c.take(c.u32())
		if kind := c.byte(); kind != 0 {
			c.fail("module[%s] export[%s] is not a function", module, name)
		}
		s.functions = append(s.functions, c.u32())
	}
}

// readTable returns the section with a maximum where there is none, or one above the limit: to grow may fail anyway.
func (s *moduleScan) readTable(c *cursor) []byte {
	n := c.count(1, "tables")
	if n == 0 {
		return []byte{0}
	}
	kind := c.byte()
	low, high := c.limits()
	if kind != 0x70 && kind != 0x6f {
		c.fail("a table of kind %#x", kind)
	}
	if low > maxTableEntries {
		c.fail("a table of %d entries, at most %d", low, maxTableEntries)
	}
	out := binary.AppendUvarint([]byte{1, kind, 1}, uint64(low))
	return binary.AppendUvarint(out, uint64(min(high, maxTableEntries)))
}

func (s *moduleScan) readMemory(c *cursor) {
	if c.count(1, "memories") == 0 {
		return
	}
	if low, _ := c.limits(); low > wasmPages {
		c.fail("a memory of %d pages, at most %d", low, wasmPages)
	}
}

// readElements counts what is in the segments: flags tell whether there is a table, an offset, a kind, and in which form entries are.
func (s *moduleScan) readElements(c *cursor) {
	for range c.count(maxSegments, "element segments") {
		flags := c.u32()
		if flags > 7 {
			c.fail("an element segment of kind %d", flags)
		}
		if flags&3 == 2 {
			c.u32()
		}
		if flags&1 == 0 {
			s.body.constant(c)
		}
		if flags&3 != 0 {
			c.byte()
		}
		n := c.count(maxElements-s.elements, "elements")
		s.elements += n
		for range n {
			if flags&4 != 0 {
				s.body.constant(c)
			} else {
				c.u32()
			}
		}
	}
}

func (s *moduleScan) readData(c *cursor) {
	for range c.count(maxDataSegments, "data segments") {
		flags := c.u32()
		if flags > 2 {
			c.fail("a data segment of kind %d", flags)
		}
		if flags == 2 {
			c.u32()
		}
		if flags != 1 {
			s.body.constant(c)
		}
		c.take(c.u32())
	}
}

func (s *moduleScan) readCode(c *cursor) {
	n := c.count(maxFunctions, "functions")
	if n != len(s.functions)-s.imported {
		c.fail("%d functions have a type and %d a body", len(s.functions)-s.imported, n)
	}
	s.body.types, s.body.functions = s.types, s.functions
	for i := range n {
		body := &cursor{b: c.take(c.u32())}
		if c.err != nil {
			return
		}
		if s.body.scan(body, s.functions[s.imported+i]); body.err != nil {
			c.fail("function %d: %w", s.imported+i, body.err)
			return
		}
	}
}

// cursor reads a module from its start. After the first error there is nothing left to read, and every value is 0.
type cursor struct {
	b   []byte
	err error
}

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	c.b = nil
}

func (c *cursor) byte() byte {
	if len(c.b) == 0 {
		c.fail("it ends too early")
		return 0
	}
	b := c.b[0]
	c.b = c.b[1:]
	return b
}

// take returns the next n bytes.
func (c *cursor) take(n uint32) []byte {
	if uint64(n) > uint64(len(c.b)) {
		c.fail("it ends too early")
		return nil
	}
	part := c.b[:n]
	c.b = c.b[n:]
	return part
}

// u32 reads an unsigned number of at most five bytes.
func (c *cursor) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		b := c.byte()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if v > 1<<32-1 {
				break
			}
			return uint32(v)
		}
	}
	c.fail("a number that is none")
	return 0
}

// signed reads a number of at most 64 bits.
func (c *cursor) signed() (v int64) {
	for shift := 0; shift < 70; shift += 7 {
		b := c.byte()
		v |= int64(b&0x7f) << shift
		if b < 0x80 {
			if b&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
	c.fail("a number that is none")
	return 0
}

// count reads how many of something follow. Each of them takes a byte or more.
func (c *cursor) count(limit int, what string) int {
	n := c.u32()
	if uint64(n) > uint64(max(limit, 0)) {
		c.fail("%d %s, at most %d", n, what, limit)
		return 0
	}
	if uint64(n) > uint64(len(c.b)) {
		c.fail("it ends too early")
		return 0
	}
	return int(n)
}

// limits reads the size of a table or a memory; without an upper one that is the highest number.
func (c *cursor) limits() (low, high uint32) {
	flags := c.byte()
	if flags > 1 {
		c.fail("limits of kind %d", flags)
	}
	low, high = c.u32(), 1<<32-1
	if flags == 1 {
		high = c.u32()
	}
	return low, high
}
