package exacta

import (
	"cmp"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/obs"
	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/secret"
	"trunkline/handlers/exacta/external"
	"trunkline/handlers/exacta/workspace"
)

// maxRoots bounds the roots whose number and events are remembered.
const maxRoots = 65_536

// Server has all projects of a process. Its methods may be called from any goroutine.
type Server struct {
	cfg     Config
	busy    codec.Refusal // of a request of a connection with too many unanswered ones (exacta §4.0.1)
	scope   *codec.Scope
	session codec.ID
	options workspace.Options
	after   func(time.Duration) <-chan time.Time // the limit of what an OpenProject does on the disk
	replays *projects.Replays
	planner *external.Planner
	opening sync.Mutex // one OpenProject at a time
	running sync.WaitGroup
	hung    atomic.Int32  // works that outlived their limit
	conns   atomic.Uint64 // that were opened
	counts  *counters
	meter   *obs.Meter         // rows by codec.Command
	readers chan struct{}      // long messages that are read
	input   *connection.Budget // of unfinished lines of all sockets

	scratches sync.Pool // of *scratch: idle sessions hold none
	live      atomic.Pointer[Live]

	mu       sync.Mutex
	projects map[codec.ID]*project
	roots    map[string]*root
	again    map[codec.ID][]event // of projects that are to be opened again: what waits for them
	stopped  bool
}

// root is a root that was opened in this session.
type root struct {
	id    codec.ID
	scope *codec.Scope
	last  uint64   // stream_seq of its last event, while it is closed
	open  *project // nil while it is closed
}

// New returns a server without projects.
func New(cfg Config) *Server {
	cfg = cfg.withDefaults()
	scope := codec.NewScope(cfg.Seed, "server")
	s := &Server{
		cfg:     cfg,
		scope:   scope,
		session: scope.Next(codec.Session),
		options: workspace.Options{Secret: secret.Find},
		after:   time.After,
		replays: projects.NewReplays(&cfg.Limits),
		planner: external.New(cfg.Planner),
		busy: codec.Refusal{
			Code:   "RES-004",
			Detail: "unanswered requests: " + strconv.Itoa(cfg.MaxInflightPerConnection),
		},
		projects: make(map[codec.ID]*project),
		roots:    make(map[string]*root),
		again:    make(map[codec.ID][]event),
		counts:   newCounters(),
		meter:    cfg.Recorder.Meter("exacta", meterNames()),
		readers:  make(chan struct{}, runtime.GOMAXPROCS(0)),
		input:    connection.NewBudget(unfinishedBytes),
	}
	s.scratches.New = func() any { return s.newScratch() }
	s.SetLive(Live{cfg.MaxConnections, cfg.MaxOpenProjects, cfg.AuthToken})
	return s
}

// project returns an open project.
func (s *Server) project(id codec.ID) *project {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.projects[id]
}

// Stop has all executions pause at their next boundary, and activities end (exacta §2.1).
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	running := 0
	for _, p := range s.projects {
		if p.journal.Status().State.Runs() {
			running++
		}
		p.post(event{stop: true})
	}
	if !s.stopped && running > 0 {
		s.cfg.Logger.Info("draining projects", "running", running)
	}
	s.stopped = true
}

// Close is Stop, and waits until nothing runs. All storage is released.
func (s *Server) Close() {
	s.Stop()
	s.running.Wait()
	s.planner.Close()
}

// entry is where the events of an OpenProject begin.
type entry struct {
	journal *projects.Journal
	next    uint64
}

// open does an OpenProject (exacta §4.1). settled is called once it is answered, or in the queue of
// a project.
func (s *Server) open(r *projects.Request, settled func()) {
	defer s.running.Done()
	defer settled()
	s.opening.Lock()
	defer s.opening.Unlock()
	s.answerOpen(r, false)
}

// answerOpen does an OpenProject. its is set if it is its turn, before what waits for the project.
func (s *Server) answerOpen(r *projects.Request, its bool) {
	if !r.Begun() {
		r.Begin(s.scope.Next(codec.Correlation))
	}
	if err := s.tryOpen(r, its); err != nil {
		line := codec.AppendFailure(nil, r.ID, r.Correlation(), s.cfg.Clock, hide(err))
		s.end(r, &projects.Answer{Line: line}, true)
	}
}

// hide removes secrets from what is sent about an error.
func hide(f *errcode.Fault) *errcode.Fault { return f.Hidden(redact) }

func redact(text string) string { return string(secret.Redact(nil, []byte(text))) }

func (s *Server) tryOpen(r *projects.Request, its bool) *errcode.Fault {
	from, _ := r.Asker.(*session)
	home, _ := os.UserHomeDir()
	at, err := within(s, func() (at located, err *errcode.Fault) {
		at.dir, at.markers, err = workspace.Locate(r.Args.Path, home, os.TempDir(), s.cfg.AllowedRoots)
		return at, err
	}, func(located) {})
	if err != nil {
		return err
	}
	dir, markers := at.dir, at.markers
	r.Args.Markers = markers
	s.loadKey()
	for {
		p, err := s.beside(dir)
		if err != nil {
			return err
		}
		if p == nil && !its && s.waits(dir, r) {
			return nil
		}
		if p == nil {
			break
		}
		from.enter(p)
		if p.post(event{request: r}) {
			return nil
		}
		if _, err := within(s, func() (_ struct{}, _ *errcode.Fault) { <-p.gone; return }, func(struct{}) {}); err != nil {
			return err
		}
	}
	ws, err := within(s, func() (*workspace.Project, *errcode.Fault) { return workspace.Open(dir, s.options) }, (*workspace.Project).Close)
	if err != nil {
		return err
	}
	return s.start(r, from, ws, dir, markers)
}

// loadKey reads the key of this installation once. Without it, no later server can prove what this
// one writes. The lock of what opens is held.
func (s *Server) loadKey() {
	if len(s.options.Key) > 0 {
		return
	}
	key, err := workspace.LoadKey(s.cfg.KeyFile)
	if err != nil {
		s.cfg.Logger.Warn("no key of this installation (exacta.key_file): work that a crash interrupts is not taken back by the next server", "error", err)
	}
	s.options.Key = key
}

// beside returns the project of a root that is open, and refuses one that overlaps with another.
func (s *Server) beside(dir string) (*project, *errcode.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.roots[dir]; r != nil && r.open != nil {
		return r.open, nil
	}
	for _, p := range s.projects {
		if workspace.Within(dir, p.root) || workspace.Within(p.root, dir) {
			return nil, errcode.New("FS-005", "overlaps with the root of an open project", "project root")
		}
	}
	if most := s.Live().MaxOpenProjects; s.stopped || len(s.projects) >= most {
		return nil, errcode.New("RES-004", "open projects: "+strconv.Itoa(most))
	}
	return nil, nil
}

// start adds a project, or lets go of its storage.
func (s *Server) start(r *projects.Request, from *session, ws *workspace.Project, dir string, markers []string) *errcode.Fault {
	err := s.add(r, from, ws, dir, markers)
	if err != nil {
		ws.Close() // not under the lock, which connections take
	}
	return err
}

// add starts the queue of a project.
func (s *Server) add(r *projects.Request, from *session, ws *workspace.Project, dir string, markers []string) *errcode.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.roots[dir]
	if known == nil {
		if len(s.roots) == maxRoots {
			return errcode.New("RES-004", "roots: 65536")
		}
		known = &root{id: s.scope.ProjectID(dir), scope: codec.NewScope(s.cfg.Seed, scopeName(len(s.roots)+1))}
		s.roots[dir] = known
	}
	p := newProject(s, known, ws, dir, markers)
	known.open = p
	s.projects[known.id] = p
	s.running.Add(1)
	from.enter(p)
	s.follow(p)
	if s.stopped { // meanwhile
		p.post(event{stop: true})
	}
	go p.run(r)
	return nil
}

// Config returns the settings of the server, with their defaults.
func (s *Server) Config() Config { return s.cfg }

// OpenProject is a project that is open.
type OpenProject struct {
	ID   string
	Root string // canonical
	projects.Status
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
	key, ok := codec.ParseID([]byte(id))
	if !ok {
		return p, nil, false
	}
	open := s.project(key)
	if open == nil {
		return p, nil, false
	}
	p = OpenProject{key.String(), open.root, open.journal.Status()}
	for how := projects.CopiedFull; how == projects.CopiedFull; most /= 2 {
		first := max(p.Oldest, p.Last-min(p.Last, uint64(most))+1)
		// What is dropped meanwhile is left out: the project is looked at, not followed.
		lines, how = open.journal.Copy(lines[:0], eventRoom, &projects.Cursor{All: true, From: first, Next: first}, p.Last)
	}
	return p, lines, true
}
