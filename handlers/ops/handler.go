package ops

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"trunkline/engine/obs"
	"trunkline/handlers/internal/httpd"
)

// handler returns the routes of the admin listener, so that tests and embedders need no socket.
func handler(c Config) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", c.healthz)
	mux.HandleFunc("/readyz", c.readyz)
	mux.HandleFunc("/version", c.version)
	mux.HandleFunc("/store", c.store)
	if c.Reload != nil {
		mux.HandleFunc("/reload", c.reload)
	}
	c.addLatency(mux)
	c.addCluster(mux)
	if c.Overview != nil {
		mux.HandleFunc("/overview", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, c.Overview()) })
	}
	if c.Monitor != nil {
		mux.HandleFunc("/monitor", c.monitor)
	}
	mux.Handle(metricsPath, promhttp.HandlerFor(c.Registry.Gatherer(), promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, // a scrape walks every metric: a fifth scraper waits for its next turn
	}))
	if c.Projects != nil {
		mux.Handle(projectsPath, c.Projects)
	}
	if c.Webhooks != nil {
		mux.HandleFunc("GET "+webhooksPath, c.Webhooks)
		mux.HandleFunc("GET "+webhooksPath+"/{name}/dead", c.Webhooks)
		mux.HandleFunc("POST "+webhooksPath+"/{name}/resend", c.Webhooks)
	}
	if c.Orders != nil {
		for _, path := range orderPaths {
			mux.Handle(path, c.Orders)
		}
	}
	if c.Console != nil {
		mux.Handle(consolePath, kept(c.Console))
		mux.HandleFunc("/{$}", toConsole)
	}
	if c.Pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return c.readOnly(c.guarded(mux))
}

// guarded is the one rule for who may read: Guard decides about all paths, those that nothing
// answers included, but for probes and, with PublicMetrics, scrapes.
func (c Config) guarded(next http.Handler) http.Handler {
	if c.Guard == nil {
		return next
	}
	guarded := c.Guard(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isProbe(r) || c.PublicMetrics && r.URL.Path == metricsPath {
			next.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

const metricsPath = "/metrics"

// isProbe reports whether a request asks only whether the server is alive, or ready.
func isProbe(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// projectsPath is below what the page of projects answers.
const projectsPath = "/exacta/"

// webhooksPath is that of a list; below it is what changes anything.
const webhooksPath = "/webhooks"

// orderPaths are below what Config.Orders answers.
var orderPaths = [...]string{"/threads/", "/agents/", "/erasures"}

// consolePath is below what the web console answers.
const consolePath = "/console/"

// kept keeps the connections of answers that are streams of events: they have pauses.
func kept(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&keeper{w, r}, r) })
}

type keeper struct {
	http.ResponseWriter
	r *http.Request
}

// WriteHeader implements http.ResponseWriter.
func (k *keeper) WriteHeader(status int) {
	if k.Header().Get("Content-Type") == "text/event-stream" {
		httpd.KeepStream(k.ResponseWriter, k.r)
	}
	k.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (k *keeper) Unwrap() http.ResponseWriter { return k.ResponseWriter }

// toConsole leads a browser to the web console. Programs find nothing, as at all other paths.
func toConsole(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		http.NotFound(w, r)
		return
	}
	http.Redirect(w, r, consolePath, http.StatusFound)
}

// readOnly lets GET and HEAD through: nothing on this listener changes anything, but for the web
// console and orders about agent threads, which decide themselves who may.
func (c Config) readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		c.markStandby(w.Header())
		below := func(path string) bool { return strings.HasPrefix(r.URL.Path, path) }
		post := r.Method == http.MethodPost &&
			(c.Console != nil && below(consolePath) || c.Webhooks != nil && below(webhooksPath+"/") ||
				c.Orders != nil && slices.ContainsFunc(orderPaths[:], below))
		if r.Method != http.MethodGet && r.Method != http.MethodHead && !post {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Health is the body of /healthz.
type Health struct {
	Alive bool   `json:"alive"`
	Error string `json:"error,omitempty"`
}

// Ready is the body of /readyz.
type Ready struct {
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons"`
	// Recovery is there while the store is read.
	Recovery *Recovery `json:"recovery,omitempty"`
}

func (c Config) healthz(w http.ResponseWriter, _ *http.Request) {
	if err := c.Live(); err != nil {
		answer(w, http.StatusServiceUnavailable, Health{Error: err.Error()})
		return
	}
	answer(w, http.StatusOK, Health{Alive: true})
}

func (c Config) readyz(w http.ResponseWriter, _ *http.Request) {
	reasons := c.Ready.Reasons()
	if len(reasons) > 0 {
		answer(w, http.StatusServiceUnavailable, Ready{Reasons: reasons, Recovery: c.Recovery()})
		return
	}
	answer(w, http.StatusOK, Ready{Ready: true, Reasons: reasons})
}

func (c Config) version(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, c.Build)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error is dropped: the peer is gone.
	_ = json.NewEncoder(w).Encode(body)
}

// Readiness is the list of reasons why new work is not welcome; ready means an empty list. Reasons
// come from the program, never from input, so the list is short. Any goroutine may call its
// methods. The zero value is ready.
type Readiness struct {
	mu         sync.Mutex
	reasons    []string
	conditions []condition
}

// condition is a reason that comes and goes by itself.
type condition struct {
	reason string
	holds  func() bool
}

// Hold adds a reason; holding the same reason twice is holding it once.
func (r *Readiness) Hold(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.reasons, reason) {
		r.reasons = append(r.reasons, reason)
	}
}

// Release removes a reason.
func (r *Readiness) Release(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reasons = slices.DeleteFunc(r.reasons, func(s string) bool { return s == reason })
}

// When adds a reason that counts while holds returns true. Each reading of the list calls holds,
// which must return promptly.
func (r *Readiness) When(reason string, holds func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conditions = append(r.conditions, condition{reason, holds})
}

// Reasons returns a copy of the list, those of Hold first, in their order. It is never nil.
func (r *Readiness) Reasons() []string {
	r.mu.Lock()
	reasons, conditions := append([]string{}, r.reasons...), r.conditions
	r.mu.Unlock()
	for _, c := range conditions {
		if c.holds() {
			reasons = append(reasons, c.reason)
		}
	}
	return reasons
}

// Cluster is the body of /cluster.
type Cluster = obs.Cluster

// StandbyHeader is a header of all answers of a node that does not own the journal of its cluster:
// what they show is of that node alone.
const StandbyHeader = "Trunkline-Standby"

func (c Config) addCluster(mux *http.ServeMux) {
	mux.HandleFunc("/cluster", func(w http.ResponseWriter, r *http.Request) {
		if c.Cluster == nil {
			refuse(w, &Refusal{Status: http.StatusNotFound, Text: obs.NoCluster})
			return
		}
		check, _ := strconv.ParseBool(r.URL.Query().Get("check")) // anything else is no
		answer(w, http.StatusOK, c.Cluster(r.Context(), check))
	})
}

// markStandby adds the StandbyHeader.
func (c Config) markStandby(h http.Header) {
	if c.Standing == nil {
		return
	}
	if text := c.Standing().Standby(); text != "" {
		h.Set(StandbyHeader, text)
	}
}

// Reload is the body of /reload: the outcome of the last order to read the settings again. The
// order itself is a signal, which the system lets only those send who may.
type Reload struct {
	// PID and Started name the process that gets the signal. Started is when it began, in a form of
	// the system; empty where that is not known.
	PID     int    `json:"pid"`
	Started string `json:"started"`
	// Count is how many orders were carried out since the start.
	Count int64 `json:"count"`
	// At is when the last one began; nil before the first.
	At *time.Time `json:"at"`
	// OK means that the settings are in force; else Error is why all stay as they were.
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
	// Changed are the settings with another value, or whose files have another content. Restart are
	// those whose new value takes a restart.
	Changed []string `json:"changed"`
	Restart []string `json:"restart"`
}

func (c Config) reload(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, c.Reload()) }
