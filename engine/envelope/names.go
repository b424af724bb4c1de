package envelope

// nameIndex finds known names: an open-addressed table, written once, sparse enough that a look-up is one comparison.
type nameIndex struct {
	slots [512]nameSlot
}

type nameSlot struct {
	name string
	key  Key   // noKey for a group
	grp  group // noGroup for a key
}

func nameHash[T ~string | ~[]byte](name T) int {
	n := len(name)
	h := uint(n)*37 + uint(name[0])*7 + uint(name[n-1])*31 + uint(name[n/2])*131 + uint(name[n/3])*17
	return int(h % uint(len(nameIndex{}.slots)))
}

func (x *nameIndex) add(s nameSlot) {
	at := nameHash(s.name)
	for x.slots[at].name != "" {
		at = (at + 1) % len(x.slots)
	}
	x.slots[at] = s
}

// find returns the slot of a name; ok is false for unknown names.
func (x *nameIndex) find(name []byte) (s *nameSlot, ok bool) {
	if len(name) == 0 {
		return nil, false
	}
	for at := nameHash(name); x.slots[at].name != ""; at = (at + 1) % len(x.slots) {
		if x.slots[at].name == string(name) {
			return &x.slots[at], true
		}
	}
	return nil, false
}

// flatNames knows the members of a flat envelope, topNames and groupMembers those of a nested one.
var flatNames = func() *nameIndex {
	x := &nameIndex{}
	for k := range numKeys {
		x.add(nameSlot{k.name(Flat), k, noGroup})
	}
	x.add(nameSlot{dagMode, ParallelMode, noGroup})
	x.add(nameSlot{loopFeedback, LoopFeedback, noGroup})
	return x
}()

var topNames = func() *nameIndex {
	x := &nameIndex{}
	for k := range numKeys {
		if infos[k].group == top {
			x.add(nameSlot{k.name(Nested), k, noGroup})
		}
	}
	for g, name := range groupNames {
		x.add(nameSlot{name, noKey, group(g)})
	}
	return x
}()

var groupMembers = func() *nameIndex {
	x := &nameIndex{}
	for g := range numGroups {
		for _, k := range nestedKeys[g] {
			x.add(nameSlot{k.name(Nested), k, g})
		}
	}
	return x
}()

// Known reports whether name is a member that an envelope of either shape may have at its top (envelope §3.1).
func Known(name []byte) bool {
	if _, ok := flatNames.find(name); ok {
		return true
	}
	_, ok := topNames.find(name)
	return ok
}
