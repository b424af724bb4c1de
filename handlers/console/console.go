package console

import (
	"context"
	"embed"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"trunkline/engine/obs"
)

// root is below what a Console answers.
const root = "/console/"

// Bounds of pages.
const (
	defaultRows = 50
	maxRows     = 500    // of one page
	maxScan     = 20_000 // entries of a table that one page looks at
	maxMethods  = 200    // rows of latencies on the overview
	maxTopics   = 1000
	maxText     = 1024    // bytes of one parameter
	maxForm     = 8 << 10 // bytes of the body of a POST
	maxMade     = 4       // pages with documents of clients made at a time; further ones wait
)

// callWithin bounds what a page waits for.
const callWithin = 10 * time.Second

// orderWithin bounds an order to a cluster, below the time that the listener takes for an answer.
const orderWithin = 25 * time.Second

// contentSecurity lets a page load what the console itself serves, and nothing inline.
const contentSecurity = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

//go:embed page
var files embed.FS

// Config is what a Console is made of.
type Config struct {
	Source Source
	// ViewerToken opens the console for reading, OperatorToken for changes as well; they differ.
	// Without both, everything on a loopback address may read.
	ViewerToken, OperatorToken string
	// Loopback is set where only this machine reaches the listener, and no page from elsewhere by a
	// name of its own.
	Loopback bool
	// Version is that of the program.
	Version string
	Logger  *slog.Logger

	now func() time.Time // nil: time.Now; for tests
}

// Console is the handler of everything below /console/. Close ends its live views.
type Console struct {
	cfg     Config
	auth    *auth
	pages   []*page
	rates   sampler
	cluster clusterReader
	tails   tails
	mux     http.ServeMux
	origins *http.CrossOriginProtection
	streams chan struct{} // one for each live view
	made    chan struct{} // one for each page that is made of documents
	running context.Context
	stop    context.CancelFunc
}

// New returns a console.
func New(c Config) (*Console, error) {
	if c.now == nil {
		c.now = time.Now
	}
	var err error
	h := &Console{cfg: c, auth: newAuth(&c), origins: http.NewCrossOriginProtection(), streams: make(chan struct{}, maxStreams), made: make(chan struct{}, maxMade)}
	h.running, h.stop = context.WithCancel(context.Background())
	h.rates = sampler{read: c.Source.Overview, now: c.now}
	h.cluster = clusterReader{read: c.Source.Cluster, now: c.now}
	h.tails.init(h.running, c.Source.Subscribe)
	if h.pages, err = parsePages(&c); err != nil {
		return nil, err
	}
	h.route()
	return h, nil
}

// assets are the files of pages.
var assets = []string{"console.css", "console.js", "icon.svg"}

// loginPaths are answered to strangers.
var loginPaths = []string{root + "login", root + "logout", root + assets[0], root + assets[1], root + assets[2]}

// route registers what is answered.
func (c *Console) route() {
	for _, asset := range assets {
		c.mux.HandleFunc("GET "+root+asset, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, files, "page/"+asset)
		})
	}
	for _, p := range c.pages {
		if p.load == nil {
			continue
		}
		path := root + p.name
		if p.name == overviewPage {
			path = root + "{$}"
		}
		c.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { c.show(w, r, p, false) })
		c.mux.HandleFunc("GET "+root+p.name+".json", func(w http.ResponseWriter, r *http.Request) { c.show(w, r, p, true) })
	}
	src := &c.cfg.Source
	if src.Overview != nil {
		c.mux.HandleFunc("GET "+root+"live", c.liveValues(func() map[string]string {
			o := c.rates.take()
			return o.texts()
		}))
	}
	if src.Cluster != nil {
		c.mux.HandleFunc("GET "+root+"cluster/live", c.liveValues(func() map[string]string { return c.cluster.take().texts() }))
	}
	if src.Subscribe != nil {
		c.mux.HandleFunc("GET "+root+"topic/live", c.liveTopic)
	}
	if c.cfg.Source.Thread != nil {
		c.mux.HandleFunc("GET "+root+"thread/live", c.liveThread)
		c.mux.HandleFunc("POST "+root+"thread/post", c.postMessage)
		c.mux.HandleFunc("POST "+root+"thread/close", c.closeThread)
	}
	if src.Terminate != nil {
		c.mux.HandleFunc("POST "+root+"process/terminate", c.terminate)
	}
	if src.Drop != nil {
		c.mux.HandleFunc("POST "+root+"connection/drop", c.drop)
	}
	if src.Cancel != nil {
		c.mux.HandleFunc("POST "+root+"project/cancel", c.cancel)
	}
	if src.Order != nil {
		for _, verb := range []string{"move", "drain", "resume", "rebalance"} {
			c.mux.HandleFunc("POST "+root+"cluster/"+verb, func(w http.ResponseWriter, r *http.Request) { c.order(w, r, verb) })
		}
	}
	if src.Cluster == nil {
		c.lacks(obs.NoCluster, "GET "+root+"cluster", "GET "+root+"cluster.json", "POST "+root+"cluster/{verb}")
	}
	if src.Projects == nil {
		c.lacks("this server serves no projects", "GET "+root+"projects", "GET "+root+"projects.json")
	}
	c.mux.HandleFunc("GET "+root+"login", c.loginForm)
	c.mux.HandleFunc("POST "+root+"login", c.login)
	c.mux.HandleFunc("POST "+root+"logout", c.logout)
}

// lacks answers requests for what the server has not.
func (c *Console) lacks(text string, patterns ...string) {
	for _, pattern := range patterns {
		c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			c.refuse(w, r, visitorOf(r), http.StatusNotFound, text)
		})
	}
}

// protect adds the headers that bound what a page of the console may do in a browser.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", contentSecurity)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // without a referrer, a POST would come from the origin "null"
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if visitorOf(r).role == stranger && !slices.Contains(loginPaths, r.URL.Path) {
		c.turnAway(w, r, visitor{}) // it did not come through Guard
		return
	}
	if !c.cfg.Loopback && !c.auth.asks() {
		answer(w, http.StatusForbidden, failure{"the console is closed: beyond loopback it needs admin.console_token_file or admin.console_operator_token_file"})
		return
	}
	c.mux.ServeHTTP(w, r)
}

// SetTokens replaces the tokens of Config, and reports which are others than before. Logins by
// those end, and live views are asked for again.
func (c *Console) SetTokens(viewerToken, operatorToken string) (viewers, operators bool) {
	changed := c.auth.replace(viewerToken, operatorToken)
	return changed[viewer], changed[operator]
}

// Close ends all live views and waits for what follows events for them.
func (c *Console) Close() {
	c.stop()
	c.tails.close()
}
