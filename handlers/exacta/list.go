package exacta

import (
	"cmp"
	"slices"

	"trunkline/engine/exacta"
	"trunkline/engine/exacta/wire"
)

// Config returns the settings of the server, with their defaults.
func (s *Server) Config() Config { return s.cfg }

// OpenProject is a project that is open.
type OpenProject struct {
	ID   string
	Root string // canonical
	exacta.Status
}

// Projects returns the open projects, by root.
func (s *Server) Projects() []OpenProject {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]OpenProject, 0, len(s.projects))
	for id, p := range s.projects {
		list = append(list, OpenProject{id.String(), p.root, p.journal.Status()})
	}
	slices.SortFunc(list, func(a, b OpenProject) int { return cmp.Compare(a.Root, b.Root) })
	return list
}

// eventRoom bounds the events that Events copies, in bytes; where they take more, they are fewer.
const eventRoom = 4 << 20

// Events returns an open project and its last events, at most so many, each a line as sessions get
// it. ok is false if the project is not open.
func (s *Server) Events(id string, most int) (p OpenProject, lines []byte, ok bool) {
	key, ok := wire.ParseID([]byte(id))
	if !ok {
		return p, nil, false
	}
	open := s.project(key)
	if open == nil {
		return p, nil, false
	}
	p = OpenProject{key.String(), open.root, open.journal.Status()}
	for how := exacta.CopiedFull; how == exacta.CopiedFull; most /= 2 {
		first := max(p.Oldest, p.Last-min(p.Last, uint64(most))+1)
		// What is dropped meanwhile is left out: the project is looked at, not followed.
		lines, how = open.journal.Copy(lines[:0], eventRoom, &exacta.Cursor{All: true, From: first, Next: first}, p.Last)
	}
	return p, lines, true
}
