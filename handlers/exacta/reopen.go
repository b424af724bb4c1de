package exacta

import (
	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
)

// maxBehind is how many requests may wait until a project is open again.
const maxBehind = 1024

// late takes what came when the project was closed. What is behind an OpenProject waits for the
// project that it opens: the order of arrival holds (exacta §2.1).
func (p *project) late(e event) {
	opens := e.request != nil && e.request.Command == codec.OpenProject
	switch {
	case (opens || len(p.behind) > 0) && len(p.behind) < maxBehind:
		p.behind = append(p.behind, e)
	case e.request != nil && len(p.behind) > 0:
		p.srv.turnAway(e.request, tooMany())
	case e.request != nil:
		p.srv.turnAway(e.request, notOpen())
	}
}

func notOpen() *errcode.Fault { return errcode.New("ST-003", notOpenDetail) }

const notOpenDetail = "project_id: the project is not open"

func tooMany() *errcode.Fault {
	return errcode.New("RES-004", "requests that wait for a project: 1024")
}

// forget notes that a project was closed. What waits behind an OpenProject has it opened again.
func (s *Server) forget(p *project) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.end()
	r := s.roots[p.root]
	r.open, r.last = nil, p.journal.Last()
	delete(s.projects, p.id)
	if len(p.behind) > 0 {
		s.again[p.id] = p.behind
		s.running.Add(1)
		go s.reopen(p.id)
	}
}

// reopen opens a project again for what waits.
func (s *Server) reopen(id codec.ID) {
	defer s.running.Done()
	s.opening.Lock()
	defer s.opening.Unlock()
	for {
		r := s.nextOpen(id)
		if r == nil {
			return
		}
		s.answerOpen(r, true)
	}
}

// nextOpen returns the next OpenProject of those that wait, nil if none does. Requests before it
// have no project.
func (s *Server) nextOpen(id codec.ID) *projects.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range s.again[id] {
		switch {
		case e.request == nil:
		case e.request.Command == codec.OpenProject:
			s.again[id] = s.again[id][i+1:]
			return e.request
		default:
			s.turnAway(e.request, notOpen())
		}
	}
	delete(s.again, id)
	return nil
}

// post hands an event on to a project that is open, or that is about to be opened again. seen is
// the project whose events the connection gets already, nil for none.
func (s *Server) post(id codec.ID, seen *project, e event) *errcode.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.projects[id]; p != nil {
		if p != seen {
			p.enter(e)
		}
		p.post(e)
		return nil
	}
	return s.wait(id, e)
}

// waits adds an OpenProject to what waits for the project of a root, if something does.
func (s *Server) waits(dir string, r *projects.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.roots[dir]
	return known != nil && s.wait(known.id, event{request: r}) == nil
}

// wait adds an event to those that wait for a project, if some do.
func (s *Server) wait(id codec.ID, e event) *errcode.Fault {
	list, waits := s.again[id]
	switch {
	case !waits:
		return notOpen()
	case len(list) == maxBehind:
		return tooMany()
	}
	s.again[id] = append(list, e)
	return nil
}

// follow gives a project that was opened again what waited for it.
func (s *Server) follow(p *project) {
	for _, e := range s.again[p.id] {
		p.enter(e)
		p.post(e)
	}
	delete(s.again, p.id)
}

// enter has the connection of a request get the events of the project.
func (p *project) enter(e event) {
	if e.request != nil {
		from, _ := e.request.Asker.(*session)
		from.enter(p)
	}
}

// reopens reports whether a project is about to be opened again.
func (s *Server) reopens(id codec.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, waits := s.again[id]
	return waits
}

// turnAway answers a request whose project is not open (exacta §3.6, step 16).
func (s *Server) turnAway(r *projects.Request, f *errcode.Fault) {
	stop(r.Timer)
	line := codec.AppendFailure(nil, r.ID, s.scope.Next(codec.Correlation), s.cfg.Clock, f)
	s.end(r, &projects.Answer{Line: line}, false)
}
