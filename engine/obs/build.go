package obs

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

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
