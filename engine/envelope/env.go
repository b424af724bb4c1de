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
