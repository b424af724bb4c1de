// Package obs is what the engine shows of itself: structured logs, build information and a metrics
// registry.
//
// Nothing here is global. A process that runs two engines has two registries, and each scrape reads
// only its own. Hot paths count in atomics of their own; the registry reads those through func
// values when it is scraped, so that a request pays nothing for being watched.
//
// Metric names start with "trunkline_", carry base units (_seconds, _bytes) and end in _total when
// they only grow. Labels have few values: a protocol, a method, a wire code; never a process, user
// or address.
package obs

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// prefix starts the name of every metric of ours.
const prefix = "trunkline_"

// toolPrefix is that of the metrics whose names a protocol gives (toolhost §4.12).
const toolPrefix = "machina_"

// Registry holds the metrics of one engine. Its methods may be called from any goroutine.
type Registry struct {
	reg *prometheus.Registry
}

// NewRegistry returns a registry that already shows the Go runtime, the process and
// trunkline_build_info.
func NewRegistry(b Build) (*Registry, error) {
	r := &Registry{reg: prometheus.NewRegistry()}
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(b),
	} {
		if err := r.register(c); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Gatherer returns the read side, for an exposition handler.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.reg }

func (r *Registry) register(c prometheus.Collector) error {
	if err := r.reg.Register(c); err != nil {
		return fmt.Errorf("cannot register metrics: %w", err)
	}
	return nil
}

func buildInfo(b Build) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: prefix + "build_info",
		Help: "Always 1; the labels say which build is running.",
		ConstLabels: prometheus.Labels{
			"version": b.Version, "revision": b.Revision, "goversion": b.Go, "goos": b.OS, "goarch": b.Arch,
		},
	})
	g.Set(1)
	return g
}

// Build identifies the running program. It is the body of /version and the labels of
// trunkline_build_info.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Time     string `json:"time"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// unknown stands where the build did not record something: a label or a column is never empty.
const unknown = "unknown"

// ReadBuild combines the version and revision of the linker with what the Go toolchain recorded.
// Empty arguments mean unknown: the version is then "dev".
func ReadBuild(version, revision string) Build {
	b := Build{
		Version: version, Revision: revision, Time: unknown,
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.addVCS(info.Settings)
	}
	b.Version = cmp.Or(b.Version, "dev")
	b.Revision = cmp.Or(b.Revision, unknown)
	return b
}

func (b *Build) addVCS(settings []debug.BuildSetting) {
	for _, s := range settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = cmp.Or(b.Revision, s.Value)
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
}
