package console

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
)

// page is a page of the console.
type page struct {
	name, title string
	// key is the second key of its shortcut; empty: it is not in the navigation.
	key string
	// parent is the page of the navigation that it belongs to.
	parent string
	// load returns what the page shows; nil: it is shown by its own handler.
	load func(c *Console, r *http.Request, q *query) (any, error)
	// there reports whether the server has what the page shows.
	there bool
	// documents is set where the page shows what clients sent, which may be many times the size of
	// a row.
	documents bool
	// tables is set where the page shows what Source.Unready is about.
	tables bool

	template *template.Template
}

// overviewPage is the name of the first page.
const overviewPage = "overview"

// parsePages returns the pages of a source, with their templates.
func parsePages(c *Config) ([]*page, error) {
	s := &c.Source
	all := []*page{
		{name: overviewPage, title: "Overview", key: "o", load: loadOverview, there: s.Overview != nil},
		{name: "processes", title: "Processes", key: "p", load: loadProcesses, there: s.Processes != nil, tables: true},
		{name: "process", title: "Process", parent: "processes", load: loadProcess, there: s.Process != nil, documents: true, tables: true},
		{name: "threads", title: "Threads", key: "t", load: loadThreads, there: s.Threads != nil, tables: true},
		{name: "thread", title: "Thread", parent: "threads", load: loadThread, there: s.Thread != nil, documents: true, tables: true},
		{name: "projects", title: "Projects", key: "j", load: loadProjects, there: s.Projects != nil},
		{name: "project", title: "Project", parent: "projects", load: loadProject, there: s.Project != nil, documents: true},
		{name: "topics", title: "Topics", key: "e", load: loadTopics, there: s.Topics != nil, tables: true},
		{name: "topic", title: "Events", parent: "topics", load: loadTopic, there: s.Subscribe != nil, tables: true},
		{name: "connections", title: "Connections", key: "c", load: loadConnections, there: s.Connections != nil},
		{name: "connection", title: "Connection", parent: "connections", load: loadConnection, there: s.Connections != nil},
		{name: "cluster", title: "Cluster", key: "n", load: loadCluster, there: s.Cluster != nil},
		{name: "slowlog", title: "Slow log", key: "l", load: loadSlow, there: s.Slow != nil},
		{name: "store", title: "Store", key: "s", load: loadStore, there: s.Store != nil},
		{name: "settings", title: "Settings", key: "x", load: loadSettings, there: s.Settings != nil},
		{name: "help", title: "Help", key: "h", load: loadHelp, there: true},
		{name: loginTemplate, title: "Log in", there: true},
		{name: errorTemplate, title: "Error", there: true},
	}
	base, err := template.New("").Funcs(functions(c.now)).ParseFS(files, "page/layout.html")
	if err != nil {
		return nil, fmt.Errorf("cannot read the pages of the console: %w", err)
	}
	pages := all[:0]
	for _, p := range all {
		if !p.there {
			continue
		}
		own, err := base.Clone()
		if err == nil {
			p.template, err = own.ParseFS(files, "page/"+p.name+".html")
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the page %s of the console: %w", p.name, err)
		}
		pages = append(pages, p)
	}
	return pages, nil
}

// pageNamed returns a page that is there.
func (c *Console) pageNamed(name string) *page {
	i := slices.IndexFunc(c.pages, func(p *page) bool { return p.name == name })
	return c.pages[i]
}

func loadOverview(c *Console, _ *http.Request, _ *query) (any, error) {
	o := c.rates.take()
	return &o, nil
}

// processStates are the states of processes, in the order of a life.
var processStates = []string{"NEW", "READY", "RUNNING", "WAITING", "BLOCKED", "TERMINATED", "ZOMBIE"}

// processesView is a page of processes with its filter.
type processesView struct {
	ProcessList
	State  string   `json:"-"`
	User   string   `json:"-"`
	PID    string   `json:"-"`
	States []string `json:"-"`
	Limit  int      `json:"-"`
	Older  string   `json:"-"` // the path of the next page; empty: there is none
	Later  bool     `json:"-"` // the page does not begin at the first one
}

func loadProcesses(c *Console, _ *http.Request, q *query) (any, error) {
	f := ProcessFilter{State: q.oneOf("state", processStates), User: q.text("user"), PID: q.text("pid"),
		After: q.number("after"), Limit: q.rows(), Scan: maxScan}
	v := &processesView{ProcessList: c.cfg.Source.Processes(f), State: f.State, User: f.User, PID: f.PID, States: processStates, Limit: f.Limit, Later: f.After > 0}
	if v.Next > 0 {
		v.Older = q.with(root+"processes", "after", v.Next)
	}
	return v, nil
}

// processView is a process with what its envelope reports about its way.
type processView struct {
	ProcessDetail
	Timeline []moment `json:"timeline"`
	Done     string   `json:"-"`
	Ended    bool     `json:"-"`
}

func loadProcess(c *Console, r *http.Request, q *query) (any, error) {
	pid := q.text("pid")
	if pid == "" {
		return nil, badf("pid is needed: the identifier of a process")
	}
	ctx, cancel := context.WithTimeout(r.Context(), callWithin)
	defer cancel()
	p, err := c.cfg.Source.Process(ctx, pid)
	if err != nil {
		return nil, err
	}
	v := &processView{ProcessDetail: p, Timeline: []moment{}, Ended: p.State == "TERMINATED" || p.State == "ZOMBIE"}
	if p.Session != nil {
		v.Timeline = timeline(p.Session.Envelope)
	}
	if q.text("done") == "terminated" && v.Ended {
		v.Done = "The process was terminated."
	}
	return v, nil
}

// threadStatuses are those of agent threads.
var threadStatuses = []string{"active", "blocked", "resolved", "closed"}

// threadsView is a page of agent threads with its filter.
type threadsView struct {
	ThreadList
	Workspace string   `json:"-"`
	Status    string   `json:"-"`
	Statuses  []string `json:"-"`
	Limit     int      `json:"-"`
	Older     string   `json:"-"`
	Later     bool     `json:"-"`
}

func loadThreads(c *Console, _ *http.Request, q *query) (any, error) {
	f := ThreadFilter{Workspace: q.text("workspace"), Status: q.oneOf("status", threadStatuses),
		Before: q.number("before"), Limit: q.rows(), Scan: maxScan}
	v := &threadsView{ThreadList: c.cfg.Source.Threads(f), Workspace: f.Workspace, Status: f.Status, Statuses: threadStatuses, Limit: f.Limit, Later: f.Before > 0}
	if v.Next > 0 {
		v.Older = q.with(root+"threads", "before", v.Next)
	}
	return v, nil
}

// threadView is some messages of an agent thread.
type threadView struct {
	ThreadDetail
	Earlier string `json:"-"` // the path of the page before; empty: there is none
	Later   string `json:"-"`
	Live    string `json:"-"` // where the messages behind those come from; empty on an earlier page
}

func loadThread(c *Console, _ *http.Request, q *query) (any, error) {
	limit, after, id := q.rows(), q.number("after"), q.text("id")
	if q.text("after") == "" { // the last page
		t, err := c.cfg.Source.Thread(id, 0, 0)
		if err != nil {
			return nil, err
		}
		after = t.Latest - min(t.Latest, uint64(limit))
	}
	t, err := c.cfg.Source.Thread(id, after, limit)
	if err != nil {
		return nil, err
	}
	v := &threadView{ThreadDetail: t}
	if after > 0 {
		v.Earlier = q.with(root+"thread", "after", after-min(after, uint64(limit)))
	}
	if t.More {
		v.Later = q.with(root+"thread", "after", t.Next)
	} else {
		v.Live = liveThreadPath(id, t.Next)
	}
	return v, nil
}

// projectsView is the list of open projects.
type projectsView struct {
	Projects []Project `json:"projects"`
	Total    int       `json:"total"`
}

func loadProjects(c *Console, _ *http.Request, q *query) (any, error) {
	limit := q.rows()
	list := c.cfg.Source.Projects()
	return &projectsView{list[:min(len(list), limit)], len(list)}, nil
}

func loadProject(c *Console, _ *http.Request, q *query) (any, error) {
	limit := q.rows()
	if q.text("limit") == "" {
		limit = maxRows
	}
	p, err := c.cfg.Source.Project(q.text("id"), limit)
	if err != nil {
		return nil, err
	}
	v := newProjectView(&p)
	v.CanCancel = c.cfg.Source.Cancel != nil && slices.Contains(cancelStates, p.State)
	if q.text("done") == "cancelled" {
		v.Done = "The cancellation was taken."
	}
	return v, nil
}

// cancelStates are the states of a project that a cancellation ends.
var cancelStates = []string{"AwaitingApproval", "Executing", "Paused"}

func loadTopics(c *Console, _ *http.Request, _ *query) (any, error) {
	return c.cfg.Source.Topics(maxTopics), nil
}

func loadSlow(c *Console, _ *http.Request, q *query) (any, error) {
	limit := q.rows()
	l := c.cfg.Source.Slow()
	l.Entries = l.Entries[:min(len(l.Entries), limit)]
	return &l, nil
}

func loadStore(c *Console, _ *http.Request, _ *query) (any, error) {
	s := c.cfg.Source.Store()
	return &s, nil
}

// settingsView is the settings that fit a filter.
type settingsView struct {
	Settings []Setting `json:"settings"`
	Total    int       `json:"total"`
	Text     string    `json:"-"`
	Changed  bool      `json:"-"`
}

func loadSettings(c *Console, _ *http.Request, q *query) (any, error) {
	list := c.cfg.Source.Settings()
	v := &settingsView{Settings: []Setting{}, Total: len(list), Text: strings.ToLower(q.text("q")), Changed: q.text("changed") != ""}
	for _, s := range list {
		if strings.Contains(strings.ToLower(s.Key+" "+s.Help), v.Text) && !(v.Changed && s.Origin == "default") {
			v.Settings = append(v.Settings, s)
		}
	}
	return v, nil
}

// helpView is the list of shortcuts.
type helpView struct {
	Pages []link `json:"pages"`
}

func loadHelp(c *Console, _ *http.Request, _ *query) (any, error) {
	return &helpView{c.nav("help")}, nil
}
