package workers

// What functions may have.
const (
	// maxCost is what compiling a module may cost by bodyScan, and maxMemory what it may keep if it is interpreted instead. It is ready
	// within a second then, and runs a few times slower, in tight loops far more than that.
	maxCost   = 15e9
	maxMemory = 256 << 20
	// maxBody is the longest body of a function, in bytes.
	maxBody = 256 << 10
	// maxBulk is how many instructions of a compiled function may each work on the whole memory. They are not interrupted, and while
	// compiled ones run, the process cannot collect its garbage: all of it would stand still, 40 times 3 ms. Programs have up to
	// 31 of them in a function. What is interpreted never stops others.
	maxBulk = 40
	// maxValues is how many values a function may hold at once: parameters, locals and operands. The interpreter has a stack of
	// them for 2,000 calls, 64 MiB.
	maxValues = 4096
	// byteCost is the cost of a byte of code, in ns, and blockShare what a block costs whatever is alive in it.
	byteCost, blockShare = 1000, 50
	// byteMemory and blockMemory are the bytes that the interpreter keeps of a byte of code and of a block.
	byteMemory, blockMemory = 36, 125
)

// bodyScan follows the code of functions, to know what it would cost to compile them. The compiler's time and memory grow with the
// square of a function's blocks times the values that are alive in them; neither can be read off its length: 16 KiB may take as
// long as the 3 MiB of a whole program.
type bodyScan struct {
	types     []signature
	functions []uint32
	effects   *effects
	open      []openBlock // reused

	// Of all functions so far.
	cost   int64 // of compiling them: about the most ns that it takes, as measured with the worst shapes of functions
	memory int64 // of interpreting them: about the bytes that are kept
	bulky  bool  // one has more than maxBulk

	// Of this function.
	blocks, bulks int64
	height, most  int32 // of the operands
}

// openBlock is a block whose end has not come.
type openBlock struct {
	base int32 // height without its parameters
	sig  signature
	dead bool // nothing gets here, up to its end
}

// scan reads the body of a function of a type.
func (s *bodyScan) scan(c *cursor, kind uint32) {
	size := len(c.b)
	if size > maxBody {
		c.fail("%d bytes, at most %d", size, maxBody)
	}
	if s.effects == nil {
		s.effects = newEffects()
	}
	sig := s.signature(c, kind)
	locals := uint64(sig.params)
	for range c.count(maxValues, "groups of locals") {
		locals += uint64(c.u32())
		c.byte()
	}
	if locals > maxValues {
		c.fail("%d locals, at most %d", locals, maxValues)
	}
	s.blocks, s.bulks, s.height, s.most = 1, 0, 0, 0
	s.open = append(s.open[:0], openBlock{sig: signature{0, sig.results}})
	for len(s.open) > 0 && c.err == nil {
		s.instruction(c)
	}
	if c.err == nil && len(c.b) > 0 {
		c.fail("there is code behind its end")
	}
	if values := int64(locals) + int64(s.most); values > maxValues {
		c.fail("%d values at once, at most %d", values, maxValues)
	} else {
		s.cost += int64(size)*byteCost + s.blocks*s.blocks*(values+blockShare)
		s.memory += int64(size)*byteMemory + s.blocks*blockMemory
		s.bulky = s.bulky || s.bulks > maxBulk
	}
}

// constant reads a constant expression with its end.
func (s *bodyScan) constant(c *cursor) {
	for c.err == nil {
		switch op := c.byte(); op {
		case 0x0b:
			return
		case 0x41, 0x42:
			c.signed()
		case 0x43:
			c.take(4)
		case 0x44:
			c.take(8)
		case 0x23, 0xd0, 0xd2:
			c.u32()
		case 0xfd:
			c.take(1 + 16)
		default:
			c.fail("instruction %#x in a constant", op)
		}
	}
}

func (s *bodyScan) signature(c *cursor, kind uint32) signature {
	if uint64(kind) >= uint64(len(s.types)) {
		c.fail("type %d of %d", kind, len(s.types))
		return signature{}
	}
	return s.types[kind]
}

// move takes operands and leaves others. Where nothing gets there may be any that the code takes.
func (s *bodyScan) move(c *cursor, takes, leaves int32) {
	b := &s.open[len(s.open)-1]
	if s.height -= takes; s.height < b.base {
		if !b.dead {
			c.fail("an operand is missing")
		}
		s.height = b.base
	}
	s.height += leaves
	s.most = max(s.most, s.height)
}

// instruction reads one.
func (s *bodyScan) instruction(c *cursor) {
	switch op := c.byte(); op {
	case 0x02, 0x03, 0x04:
		s.enter(c, op)
	case 0x05, 0x0b:
		s.leave(c, op == 0x05)
	case 0x0c, 0x0d: // br, br_if
		c.u32()
		s.blocks++
		if op == 0x0d {
			s.move(c, 1, 0)
		} else {
			s.jumped()
		}
	case 0x0e: // br_table
		for range c.count(maxBody, "targets") + 1 {
			c.u32()
			s.blocks++
		}
		s.jumped()
	case 0x00, 0x0f:
		s.jumped()
	case 0x10:
		s.call(c)
	case 0x11: // call_indirect, which looks at what it calls
		s.blocks++
		sig := s.signature(c, c.u32())
		c.u32()
		s.move(c, 1+sig.params, sig.results)
	case 0x1c: // select
		c.take(uint32(c.count(1, "types of a select")))
		s.move(c, 3, 1)
	case 0xfc:
		s.wide(c)
	case 0xfd:
		s.vector(c)
	default:
		s.plain(c, op)
	}
}

// enter begins a block, a loop or an if.
func (s *bodyScan) enter(c *cursor, op byte) {
	var sig signature
	switch kind := c.signed(); {
	case kind >= 0:
		sig = s.signature(c, uint32(min(kind, 1<<32-1)))
	case kind != -64: // not empty: a type of value
		sig.results = 1
	}
	s.blocks += int64(op) - 1 // a loop looks whether it is to be interrupted, an if has two ways
	if op == 0x04 {
		s.move(c, 1, 0)
	}
	s.move(c, sig.params, 0)
	s.open = append(s.open, openBlock{base: s.height, sig: sig, dead: s.open[len(s.open)-1].dead})
	s.move(c, 0, sig.params)
}

// leave ends a block, or begins the other way of an if.
func (s *bodyScan) leave(c *cursor, other bool) {
	top := len(s.open) - 1
	b := &s.open[top]
	if !b.dead && s.height != b.base+b.sig.results {
		c.fail("a block leaves %d operands, not %d", s.height-b.base, b.sig.results)
	}
	s.height = b.base
	if other {
		b.dead = top > 0 && s.open[top-1].dead
		s.move(c, 0, b.sig.params)
		return
	}
	results := b.sig.results
	if s.open = s.open[:top]; top > 0 {
		s.move(c, 0, results)
	}
}

// jumped is what follows a jump: nothing gets there.
func (s *bodyScan) jumped() {
	b := &s.open[len(s.open)-1]
	s.height, b.dead = b.base, true
}

func (s *bodyScan) call(c *cursor) {
	f := c.u32()
	if uint64(f) >= uint64(len(s.functions)) {
		c.fail("a call of function %d of %d", f, len(s.functions))
		return
	}
	sig := s.signature(c, s.functions[f])
	s.move(c, sig.params, sig.results)
}

// wide reads an instruction on memory or tables as a whole, or a conversion.
func (s *bodyScan) wide(c *cursor) {
	op := c.u32()
	if op > 17 {
		c.fail("instruction 0xfc %d", op)
		return
	}
	if op < 8 {
		s.move(c, 1, 1)
		return
	}
	c.u32()
	switch op {
	case 9, 13: // a segment is dropped
	case 15: // table.grow
		s.move(c, 2, 1)
	case 16: // table.size
		s.move(c, 0, 1)
	case 8, 10, 12, 14:
		c.u32()
		fallthrough
	default:
		s.blocks += 2
		s.bulks++
		s.move(c, 3, 0)
	}
}

// vector reads an instruction on vectors.
func (s *bodyScan) vector(c *cursor) {
	op := c.u32()
	if op > 255 {
		c.fail("instruction 0xfd %d", op)
		return
	}
	switch {
	case op <= 11 || op == 92 || op == 93:
		s.address(c)
	case op == 12 || op == 13:
		c.take(16)
	case op >= 21 && op <= 34:
		c.byte()
	case op >= 84 && op <= 91:
		s.address(c)
		c.byte()
	}
	by := s.effects.vector[op]
	s.move(c, int32(by.takes), int32(by.leaves))
}

func (s *bodyScan) address(c *cursor) {
	c.u32()
	c.u32()
}

// plain reads an instruction that does as much to the operands wherever it stands.
func (s *bodyScan) plain(c *cursor, op byte) {
	switch {
	case op >= 0x28 && op <= 0x3e:
		s.address(c)
	case op >= 0x20 && op <= 0x26, op == 0x3f, op == 0x40, op == 0xd0, op == 0xd2:
		c.u32()
	case op == 0x41 || op == 0x42:
		c.signed()
	case op == 0x43:
		c.take(4)
	case op == 0x44:
		c.take(8)
	}
	by := s.effects.plain[op]
	if by == unknownEffect {
		c.fail("instruction %#x", op)
		return
	}
	s.move(c, int32(by.takes), int32(by.leaves))
}
