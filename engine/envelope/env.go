// Package envelope is the one model of an envelope, the self-contained state of a request on its
// way through a pipeline of agents, and the engine step that moves it on.
//
//	Env      an envelope read in place: decoded once, changed members overlaid, the rest copied
//	Engine   boundary A: process, create, can-continue, result, validate; pure functions
//
// An envelope comes in two shapes, flat and nested (envelope §3.1), and in two forms: JSON at
// boundary A, MessagePack at boundary B. The form decides whose rules apply. A reply is the input
// with the engine's changes written over it: unknown members, opaque subtrees, the spelling of
// numbers and timestamps all come back as they were.
//
// Env keeps every known member as its raw encoding plus, for the ones that are computed with, the
// value; a change puts a new raw encoding in place. Writing an envelope is therefore copying spans,
// and reading one is a single walk over two levels.
package envelope

// Env is an envelope being worked on: decoded in place, changed member by member, written again.
// The zero value is ready for Decode; an Env is meant to be reused and then allocates nothing for
// envelopes no larger than before. It is not safe for concurrent use.
//
// What its methods return points into the decoded bytes or into the Env and is valid until the next
// Decode.
type Env struct {
	form  Form
	shape Shape
	f     [numKeys]field
	// identity is what stood under that name: a map makes the shape nested.
	identity Kind

	top      []member
	groups   [numGroups][]member
	outputs  []output
	outputAt nameSet // where each stands in outputs
	// outputsSet means that outputs differ from the encoding they came from.
	outputsSet bool
	// newerFeedback means that the flat shape's feedback came under its newer name only.
	newerFeedback bool
	// olderMode means the same of parallel_mode under its older name.
	olderMode bool

	// unknown counts the members that the model does not know and the outputs, total all members
	// that were gone through; trusted switches the bounds on them off.
	unknown, total int
	trusted        bool

	arena []byte // texts without their escapes, and encodings of what was written
	// collect, when set, takes the problems of single members, and reading goes on.
	collect func(*Problem)

	names                 nameSet // scratch
	scratch, pairs, inner []pair
}

// field is a known member's state.
type field struct {
	raw  []byte // the value's encoding now; nil: absent
	text []byte // the value, of the text classes
	at   int32  // which member of the input's list it is
	n    int64  // the value, of counters; flags: 0 or 1
	kind Kind
	set  bool // written since it was read
	null bool // stood there as null, which its type has not
}

// member is one member of the input's maps, in the input's order.
type member struct {
	spelled []byte // the name as members.next gives it
	raw     []byte
	kind    Kind  // of raw
	key     Key   // noKey: unknown, or a group
	grp     group // the group that it is, else noGroup
	old     Key   // whose other name it is in the flat shape, else 0
}

// dropped marks a member that a later one of the same name replaced.
const dropped = numKeys

// maxKeptArena bounds what an idle Env holds of a large envelope's texts.
const maxKeptArena = 64 << 10

// maxKeptMembers does the same for its lists.
const maxKeptMembers = 1024

func (e *Env) reset(form Form) {
	e.form, e.shape, e.identity, e.outputsSet = form, Flat, Absent, false
	e.newerFeedback, e.olderMode = false, false
	e.unknown, e.total, e.trusted = 0, 0, false
	clear(e.f[:])
	if cap(e.arena) > maxKeptArena {
		e.arena = nil
	}
	e.arena = e.arena[:0]
	e.top = recycle(e.top)
	for g := range e.groups {
		e.groups[g] = recycle(e.groups[g])
	}
	e.outputs = recycle(e.outputs)
	e.outputAt.reset()
	e.names.reset()
}

// recycle empties list and lets go of what it pointed to.
func recycle[T any](list []T) []T {
	if cap(list) > maxKeptMembers {
		return nil
	}
	clear(list)
	return list[:0]
}

// Release lets go of everything lent to e and of what it outgrew, for a pool to keep it.
func (e *Env) Release() { e.reset(e.form) }

// Problem describes why something is no envelope, or which member is wrong (envelope §3.2, §3.3).
type Problem struct {
	// Field is the path of the member, "" if the whole thing is meant.
	Field string
	// Text is what is wrong with it: "must be an integer".
	Text string
}

// Message returns the text that follows "Invalid envelope: ".
func (p *Problem) Message() string {
	switch {
	case p.Text == missingText:
		return "missing field `" + p.Field + "`"
	case p.Field == "":
		return p.Text
	}
	return p.Field + " " + p.Text
}

const missingText = "missing"

// nameSet answers whether a name was there before; lists of any length stay linear.
type nameSet struct {
	few  [][]byte
	many map[string]int
}

const fewNames = 24

func (s *nameSet) reset() {
	clear(s.few)
	s.few, s.many = s.few[:0], nil
}

// add returns the index at which name was added before, or -1 and adds it as the next.
func (s *nameSet) add(name []byte) (before int) {
	if at := s.find(name); at >= 0 {
		return at
	}
	if s.many == nil {
		if len(s.few) < fewNames {
			s.few = append(s.few, name)
			return -1
		}
		s.many = make(map[string]int, 4*fewNames)
		for i, n := range s.few {
			s.many[string(n)] = i
		}
	}
	s.many[string(name)] = len(s.many)
	return -1
}

// find returns the index at which name was added, -1 if it was not.
func (s *nameSet) find(name []byte) int {
	if s.many != nil {
		if i, ok := s.many[string(name)]; ok {
			return i
		}
		return -1
	}
	for i, n := range s.few {
		if string(n) == string(name) {
			return i
		}
	}
	return -1
}

// Text returns the text of a member of the text and time classes, without escapes; the default
// where it is missing, nil where that is null.
func (e *Env) Text(k Key) []byte { return e.f[k].text }

// Int returns a counter, its default where it is missing.
func (e *Env) Int(k Key) int64 { return e.f[k].n }

// Bool returns a flag, false where it is missing or null.
func (e *Env) Bool(k Key) bool { return e.f[k].n != 0 }

// Value returns a member as it stands now; for Outputs use the methods of outputs.
func (e *Env) Value(k Key) Value {
	return Value{e.f[k].kind, e.f[k].raw}
}

// strings appends the elements of a list of strings to dst.
func (e *Env) strings(k Key, dst [][]byte) [][]byte {
	return e.textsOf(e.Value(k), dst)
}

// textsOf appends the strings of an encoded list to dst; elements of other types are skipped
// (envelope §3.8).
func (e *Env) textsOf(list Value, dst [][]byte) [][]byte {
	if list.Kind != List {
		return dst
	}
	it := openList(e.form, list.Raw)
	for it.next() {
		if it.v.Kind == String {
			dst = append(dst, e.textOf(it.v))
		}
	}
	return dst
}

// Reason returns why the envelope ended, or why it waits.
func (e *Env) Reason() Reason { return ParseReason(e.f[TerminalReason].text) }

// Get returns a member of an encoded map, the last one where the name is repeated; Absent if there
// is none or raw is no map.
func (e *Env) Get(raw []byte, name string) (v Value) {
	it := openMap(e.form, raw)
	for it.next() {
		if len(it.name) >= len(name) && string(e.unescape(it.name)) == name {
			v = it.v
		}
	}
	return v
}

// Str returns the text of a String without its escapes; ok is false for any other value.
func (e *Env) Str(v Value) (s []byte, ok bool) {
	if v.Kind != String {
		return nil, false
	}
	return e.textOf(v), true
}

// waits reports whether r is the reason of an envelope that waits for its user.
func (r Reason) waits() bool { return r == ClarificationRequired || r == ConfirmationRequired }
