package exacta

import (
	"cmp"
	"slices"

	"trunkline/engine/exacta"
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
