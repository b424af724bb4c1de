package orchestration

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
)

// maxKeys is the largest number of keys an object of a pipeline_config has.
const maxKeys = 7

// The keys of a pipeline_config's objects (envelope §3.9).
var (
	topKeys   = []string{"name", "agents", "max_iterations", "max_llm_calls", "max_agent_hops", "edge_limits"}
	stageKeys = []string{"name", "agent", "routing", "routing_rules", "default_next", "error_next", "stage_order"}
	ruleKeys  = []string{"condition", "value", "target"}
	limitKeys = []string{"from_stage", "to_stage", "max_count"}
)

// place is where an object stands in a pipeline_config: an element of a list, or of a list in such
// an element. The zero place is the pipeline_config itself.
type place struct {
	list, inner string
	i, j        int
}

// path spells a member of the object at p, or the object itself for "".
func (p place) path(member string) string {
	if p.list == "" {
		return member
	}
	s := p.list + "[" + strconv.Itoa(p.i) + "]"
	if p.inner != "" {
		s += "." + p.inner + "[" + strconv.Itoa(p.j) + "]"
	}
	if member != "" {
		s += "." + member
	}
	return s
}

// object is a map of a pipeline_config taken apart: the encodings of the members named by keys.
// They point into the bytes parsed. A member that is absent or nil is nil here.
type object struct {
	at   place
	keys []string
	list [maxKeys][]byte
}

func (o *object) raw(key string) []byte { return o.list[slices.Index(o.keys, key)] }

// configParser reads one pipeline_config. Its methods do nothing of use once fault is set; callers
// look at it where going on would cost something.
type configParser struct {
	p      *Pipeline
	drafts []draft // as listed
	rules  int     // so far, of all stages
	fault  string  // the first one found
}

func (c *configParser) refuse(text string) {
	c.fault = cmp.Or(c.fault, text)
}

// misfit refuses a member, or with "" the object itself, that is of the wrong type, range or size.
func (c *configParser) misfit(at place, member, what string) {
	if path := at.path(member); path != "" {
		what = path + " " + what
	}
	c.refuse("Invalid pipeline_config: " + what)
}

func (c *configParser) exceeds(at place, member string, limit int, units string) {
	c.misfit(at, member, "exceeds "+strconv.Itoa(limit)+" "+units)
}

// object takes the map raw apart. Unknown keys are ignored; of a repeated key the last one counts.
func (c *configParser) object(at place, raw []byte, keys []string) object {
	o := object{at: at, keys: keys}
	if mpack.KindOf(raw) != mpack.Map {
		c.misfit(at, "", "must be an object")
		return o
	}
	m := mpack.OpenMap(raw)
	for _, key, value, ok := m.Next(); ok; _, key, value, ok = m.Next() {
		if mpack.KindOf(value) == mpack.Nil {
			value = nil
		}
		if k := slices.Index(keys, string(key)); k >= 0 {
			o.list[k] = value
		}
	}
	return o
}

// str returns the text of member k, which points into the bytes parsed; set reports whether there
// is one.
func (c *configParser) str(o *object, k string) (s []byte, set bool) {
	if o.raw(k) == nil {
		return nil, false
	}
	v := mpack.ReadValue(o.raw(k))
	if v.Kind != mpack.Str {
		c.misfit(o.at, k, "must be a string")
		return nil, false
	}
	return v.Data, true
}

// identifier is str for what is stored and echoed.
func (c *configParser) identifier(o *object, k string) (s []byte, set bool) {
	s, set = c.str(o, k)
	if len(s) > wire.MaxIdentifier {
		c.exceeds(o.at, k, wire.MaxIdentifier, "bytes")
		return nil, false
	}
	return s, set
}

// required is identifier for a member that must be there.
func (c *configParser) required(o *object, k string) []byte {
	s, set := c.identifier(o, k)
	if !set {
		c.misfit(o.at, k, "is required")
	}
	return s
}

// list returns an iterator over member k, empty if there is none. It is refused if it has more than
// room elements, which is what is left of limit units.
func (c *configParser) list(o *object, k string, room, limit int, units string) mpack.List {
	if o.raw(k) == nil {
		return mpack.List{}
	}
	if mpack.KindOf(o.raw(k)) != mpack.Array {
		c.misfit(o.at, k, "must be an array")
		return mpack.List{}
	}
	l := mpack.OpenList(o.raw(k))
	if l.Len() > room {
		c.exceeds(o.at, k, limit, units)
		return mpack.List{}
	}
	return l
}

// integer returns member k; set reports whether there is one. width names the range in a refusal.
func (c *configParser) integer(o *object, k string, width string) (n int64, set bool) {
	if o.raw(k) == nil {
		return 0, false
	}
	switch v := mpack.ReadValue(o.raw(k)); v.Kind {
	case mpack.Int:
		return v.Int, true
	case mpack.BigUint:
		c.tooLarge(o, k, strconv.FormatUint(uint64(v.Int), 10), width)
	default:
		c.misfit(o.at, k, "must be an integer")
	}
	return 0, false
}

// counter returns member k as a non-negative i32; set reports whether there is one.
func (c *configParser) counter(o *object, k string) (n int64, set bool) {
	n, set = c.integer(o, k, "i32")
	switch {
	case n < 0:
		c.misfit(o.at, k, "must be non-negative, got "+strconv.FormatInt(n, 10))
	case n > math.MaxInt32:
		c.tooLarge(o, k, strconv.FormatInt(n, 10), "i32")
	default:
		return n, set
	}
	return 0, false
}

func (c *configParser) tooLarge(o *object, k string, value, kind string) {
	c.misfit(o.at, k, "value "+value+" exceeds "+kind+" range")
}
