package envelope

// knownName is a name that means something in an envelope, and where it does.
type knownName struct {
	name  string
	key   Key   // noKey for a group's name
	group group // the group of that name, else noGroup
	flat  bool  // at the top of the flat shape
	top   bool  // at the top of the nested shape
	in    group // the group of the nested shape that has it as a member, else noGroup
}

// numNames counts the keys, the two other names that some of them have, and the groups.
const numNames = int(numKeys) + 2 + int(numGroups)

// nameIndex finds known names with one comparison: the hash is perfect, which a test checks.
type nameIndex struct {
	names [numNames]knownName
	at    [256]uint8 // by hash: one more than the index into names
}

var names = indexNames()

func indexNames() (x nameIndex) {
	add := func(i int, n knownName) {
		x.names[i] = n
		x.at[nameHash(n.name)] = uint8(i + 1)
	}
	for k := range numKeys {
		n := knownName{name: infos[k].flat, key: k, group: noGroup, flat: true, in: noGroup}
		if n.top = infos[k].group == top; !n.top && infos[k].nested == "" {
			n.in = infos[k].group
		}
		add(int(k), n)
	}
	add(int(numKeys), knownName{name: dagMode, key: ParallelMode, group: noGroup, flat: true, in: noGroup})
	add(int(numKeys)+1, knownName{name: loopFeedback, key: LoopFeedback, group: noGroup, flat: true, in: execution})
	for g, name := range groupNames {
		add(int(numKeys)+2+g, knownName{name: name, key: noKey, group: group(g), top: true, in: noGroup})
	}
	return x
}

func nameHash[T ~string | ~[]byte](name T) uint8 {
	n := len(name)
	return uint8(n)*82 + name[0]*235 + name[n-1]*187 + name[n/2]*84
}

var noName = knownName{key: noKey, group: noGroup, in: noGroup}

// findName returns what a name means; an unknown name means nothing anywhere.
func findName(name []byte) *knownName {
	if len(name) == 0 {
		return &noName
	}
	if i := names.at[nameHash(name)]; i > 0 && names.names[i-1].name == string(name) {
		return &names.names[i-1]
	}
	return &noName
}

// old reports whether n is not the usual name of its key in the flat shape.
func (n *knownName) old() bool { return n.flat && n.name != infos[n.key].flat }

// Known reports whether name is a member that an envelope of either shape may have at its top
// (envelope §3.1).
func Known(name []byte) bool {
	n := findName(name)
	return n.flat || n.top
}
