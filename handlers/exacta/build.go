package exacta

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/codec/jsonx"
	"trunkline/engine/exacta"
	"trunkline/engine/exacta/fault"
	"trunkline/engine/procgroup"
	"trunkline/handlers/exacta/workspace"
)

// Configurations of builds (exacta §4.13).
const (
	debugBuild   = "Debug"
	releaseBuild = "Release"
)

const (
	defaultBuild = 300             // seconds
	killAfter    = 2 * time.Second // from SIGTERM to SIGKILL
)

// inherited are the variables of the server that a build gets (exacta §4.13).
var inherited = []string{"PATH", "HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "LANG", "LC_ALL", "GOPATH", "GOCACHE", "GOMODCACHE", "GOROOT",
	"GOTOOLCHAIN", "CARGO_HOME", "RUSTUP_HOME", "DOTNET_ROOT", "NUGET_PACKAGES", "SystemRoot", "APPDATA", "LOCALAPPDATA", "ProgramFiles"}

// build runs the build tool (exacta §4.13). seconds is 0 for the limit of the project.
func (j *job) build(configuration string, seconds int) *fault.Fault {
	ws := j.p.disk.ws
	config, err := ws.LoadConfig()
	if err != nil {
		return err
	}
	if configuration == "" {
		configuration = config.Configuration
	}
	if configuration == "" {
		configuration = debugBuild
	}
	if seconds == 0 {
		seconds = config.BuildTimeout
	}
	tool := toolOf(config, ws.Markers())
	if tool == "" {
		return fault.New("BLD-001", "no build tool is detected", "none")
	}
	argv, err := command(ws, tool, configuration)
	if err != nil {
		return err
	}
	env := environment(configuration)
	file, failed := procgroup.Executable(tool, env)
	if failed != nil {
		return fault.New("BLD-001", "not in PATH: "+tool, tool)
	}
	dir := strings.TrimSuffix(config.WorkingDirectory, "/")
	if dir != "" && dir != "." && !ws.IsDir(dir) {
		return fault.New("CFG-003", "build.working_directory: no directory", "build.working_directory")
	}
	if err := j.act(); err != nil {
		return err
	}
	return j.runTool(tool, file, argv, env, filepath.Join(ws.Root(), dir), seconds)
}

// environment returns the variables of a build.
func environment(configuration string) []string {
	var env []string
	for _, name := range inherited {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	node := "development"
	if configuration == releaseBuild {
		node = "production"
	}
	return append(env, "CONFIGURATION="+configuration, "NODE_ENV="+node, "DOTNET_CLI_TELEMETRY_OPTOUT=1")
}

// command returns the words of a build command.
func command(ws *workspace.Project, tool, configuration string) ([]string, *fault.Fault) {
	release := configuration == releaseBuild
	switch tool {
	case "go":
		if release {
			return []string{"go", "build", "-trimpath", "-ldflags=-s -w", "-o", os.DevNull, "./..."}, nil
		}
		return []string{"go", "build", "-o", os.DevNull, "./..."}, nil
	case "cargo":
		if release {
			return []string{"cargo", "build", "--release"}, nil
		}
		return []string{"cargo", "build"}, nil
	case "npm":
		if !hasBuildScript(ws) {
			return nil, fault.New("CFG-002", "package.json has no scripts.build", "scripts.build")
		}
		return []string{"npm", "run", "build"}, nil
	case "dotnet":
		project, err := dotnetProject(ws)
		if err != nil {
			return nil, err
		}
		return []string{"dotnet", "build", project, "-c", configuration, "--nologo"}, nil
	}
	return []string{"make"}, nil
}

// hasBuildScript reports whether package.json has a script of that name.
func hasBuildScript(ws *workspace.Project) bool {
	text, _, err := ws.Read("package.json")
	if err != nil || !jsonx.Check(text, jsonx.MaxDepth).OK() {
		return false
	}
	var scripts, build [1]jsonx.Value
	jsonx.Pick(text, []string{"scripts"}, scripts[:])
	if scripts[0].Kind != jsonx.ObjectStart {
		return false
	}
	jsonx.Pick(scripts[0].Raw, []string{"build"}, build[:])
	return build[0].Kind == jsonx.String
}

// dotnetProject returns the only solution of the root, else its only project.
func dotnetProject(ws *workspace.Project) (string, *fault.Fault) {
	entries, err := os.ReadDir(ws.Root())
	if err != nil {
		return "", fault.New("FS-002", "root", ".")
	}
	for _, ends := range [][]string{{".sln"}, {".csproj", ".fsproj", ".vbproj"}} {
		var found []string
		for _, e := range entries {
			if !e.IsDir() && slices.Contains(ends, filepath.Ext(e.Name())) {
				found = append(found, e.Name())
			}
		}
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			break
		}
	}
	return "", fault.New("CFG-002", "not exactly one solution or project", "build.project")
}

// runTool runs a build command to its end, its time limit, or until it is aborted.
func (j *job) runTool(tool, file string, argv, env []string, dir string, seconds int) *fault.Fault {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fault.New("RES-004", "no null device")
	}
	defer func() { _ = null.Close() }() // only read
	r, w, err := os.Pipe()
	if err != nil {
		return fault.New("RES-004", "no pipe")
	}
	defer func() { _ = r.Close() }() // only read
	proc, err := procgroup.Start(file, argv, &os.ProcAttr{Dir: dir, Env: env, Files: []*os.File{null, w, w}})
	_ = w.Close() // the process has its own
	if err != nil {
		return fault.New("BLD-001", "cannot start: "+tool, tool)
	}
	lines := newCounter(tool)
	lines.root = []byte(j.p.root)
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(lines, r) // what was read counts
	}()
	ended, late := make(chan struct{}), make(chan bool, 1)
	go func() { late <- j.watch(proc, ended, time.Duration(seconds)*time.Second) }()
	code := proc.Wait()
	close(ended)
	_ = r.SetReadDeadline(time.Now().Add(killAfter)) // a process that left the group may hold it
	<-read
	if <-late {
		if j.stopped() {
			return fault.New("IPC-010", "")
		}
		return fault.New("BLD-004", "", strconv.Itoa(seconds))
	}
	lines.end()
	j.w.Build = exacta.BuildResult{ExitCode: code, Warnings: lines.warnings, Errors: lines.errors, Tail: lines.tail()}
	if code != 0 && lines.errors == 0 {
		j.w.Build.Errors = 1
	}
	return nil
}

// watch ends a process that takes too long or is not wanted any more. It reports whether it did.
func (j *job) watch(proc *procgroup.Process, ended <-chan struct{}, within time.Duration) bool {
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case <-ended:
		return false
	case <-j.stop:
	case <-limit.C:
	}
	if err := unix.Kill(-proc.Pid, unix.SIGTERM); !errors.Is(err, unix.ESRCH) {
		wait := time.NewTimer(killAfter)
		defer wait.Stop()
		select {
		case <-ended:
			return true
		case <-wait.C:
		}
	}
	proc.Kill()
	return true
}
