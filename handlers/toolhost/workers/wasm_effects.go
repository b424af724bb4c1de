package workers

// effect is what an instruction does to the operands.
type effect struct{ takes, leaves int8 }

// effects are those of the instructions by their number; vector behind 0xfd.
type effects struct{ plain, vector [256]effect }

// The kinds of effects.
var (
	unknownEffect = effect{-1, -1} // there is no such instruction
	noEffect      = effect{}
	makes         = effect{0, 1}
	changes       = effect{1, 1}
	joins         = effect{2, 1}
	selects       = effect{3, 1}
	drops         = effect{1, 0}
	stores        = effect{2, 0}
)

// effectRange is that of a range of instructions, both ends included.
type effectRange struct {
	from, to byte
	by       effect
}

// plainEffects are the instructions of WebAssembly 2.0, without those that say themselves what they take.
var plainEffects = [...]effectRange{
	{0x01, 0x01, noEffect}, {0x1a, 0x1a, drops}, {0x1b, 0x1b, selects},
	{0x20, 0x20, makes}, {0x21, 0x21, drops}, {0x22, 0x22, changes}, {0x23, 0x23, makes}, {0x24, 0x24, drops}, // variables
	{0x25, 0x25, changes}, {0x26, 0x26, stores}, // tables
	{0x28, 0x35, changes}, {0x36, 0x3e, stores}, {0x3f, 0x3f, makes}, {0x40, 0x40, changes}, // memory
	{0x41, 0x44, makes},                                                                    // constants
	{0x45, 0x45, changes}, {0x46, 0x4f, joins}, {0x50, 0x50, changes}, {0x51, 0x66, joins}, // comparisons
	{0x67, 0x69, changes}, {0x6a, 0x78, joins}, {0x79, 0x7b, changes}, {0x7c, 0x8a, joins}, // integers
	{0x8b, 0x91, changes}, {0x92, 0x98, joins}, {0x99, 0x9f, changes}, {0xa0, 0xa6, joins}, // floating point
	{0xa7, 0xc4, changes},                                           // conversions
	{0xd0, 0xd0, makes}, {0xd1, 0xd1, changes}, {0xd2, 0xd2, makes}, // references
}

// vectorEffects are those that do not make one of two.
var vectorEffects = [...]effectRange{
	{0, 10, changes}, {11, 11, stores}, {12, 12, makes}, {15, 22, changes}, {24, 25, changes}, {27, 27, changes}, {29, 29, changes},
	{31, 31, changes}, {33, 33, changes}, {77, 77, changes}, {82, 82, selects}, {83, 83, changes}, {88, 91, stores},
	{92, 100, changes}, {103, 106, changes}, {116, 117, changes}, {122, 122, changes}, {124, 129, changes}, {131, 132, changes},
	{135, 138, changes}, {148, 148, changes}, {160, 161, changes}, {163, 164, changes}, {167, 170, changes}, {192, 193, changes},
	{195, 196, changes}, {199, 202, changes}, {224, 225, changes}, {227, 227, changes}, {236, 237, changes}, {239, 239, changes},
	{248, 255, changes},
}

func newEffects() *effects {
	e := new(effects)
	for op := range e.plain {
		e.plain[op], e.vector[op] = unknownEffect, joins
	}
	for _, r := range plainEffects {
		for op := int(r.from); op <= int(r.to); op++ {
			e.plain[op] = r.by
		}
	}
	for _, r := range vectorEffects {
		for op := int(r.from); op <= int(r.to); op++ {
			e.vector[op] = r.by
		}
	}
	return e
}
