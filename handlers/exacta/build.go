package exacta

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/codec/jsonx"
	"trunkline/engine/procgroup"
	"trunkline/engine/projects"
	"trunkline/engine/projects/errcode"
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
func (j *job) build(configuration string, seconds int) *errcode.Fault {
	config, tool, err := j.toolchain()
	if err != nil {
		return err
	}
	configuration = cmp.Or(configuration, configurationOf(config))
	seconds = cmp.Or(seconds, config.BuildTimeout)
	argv, err := command(j.p.disk.ws, tool, directory(config), configuration)
	if err != nil {
		return err
	}
	prog, err := j.find(tool, argv, configuration, config)
	if err != nil {
		return err
	}
	if err := j.act(); err != nil {
		return err
	}
	return j.runTool(prog, seconds)
}

// configurationOf returns the configuration of builds that name none.
func configurationOf(c *workspace.Config) string {
	if c.Configuration == "" {
		return debugBuild
	}
	return c.Configuration
}

// toolchain returns the build tool of the project: BLD-001 if it has none.
func (j *job) toolchain() (*workspace.Config, string, *errcode.Fault) {
	ws := j.p.disk.ws
	config, err := ws.LoadConfig()
	if err != nil {
		return nil, "", err
	}
	tool := toolOf(config, ws.Markers())
	if tool == "" {
		return nil, "", errcode.New("BLD-001", "no build tool is detected", "none")
	}
	return config, tool, nil
}

// program is a program that a project starts.
type program struct {
	tool, file string
	argv, env  []string
	dir        string
}

// find returns the program of a tool: BLD-001 if it is not installed.
func (j *job) find(tool string, argv []string, configuration string, config *workspace.Config) (*program, *errcode.Fault) {
	env := environment(configuration)
	file, failed := procgroup.Executable(tool, env)
	if failed != nil {
		return nil, errcode.New("BLD-001", "not in PATH: "+tool, tool)
	}
	ws := j.p.disk.ws
	dir := directory(config)
	if dir != "" && !ws.IsDir(dir) {
		return nil, errcode.New("CFG-003", "build.working_directory: no directory", "build.working_directory")
	}
	return &program{tool, file, argv, env, filepath.Join(ws.Root(), dir)}, nil
}

// directory returns the rel path in which programs run, empty for the root.
func directory(c *workspace.Config) string {
	if dir := strings.TrimSuffix(c.WorkingDirectory, "/"); dir != "." {
		return dir
	}
	return ""
}

// start starts a program in a process group of its own, without input (exacta §4.13). out takes its
// output.
func (p *program) start(out *os.File) (*procgroup.Process, *errcode.Fault) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, errcode.New("RES-004", "no null device")
	}
	defer func() { _ = null.Close() }() // only read
	proc, err := procgroup.Start(p.file, p.argv, &os.ProcAttr{Dir: p.dir, Env: p.env, Files: []*os.File{null, out, out}})
	if err != nil {
		return nil, errcode.New("BLD-001", "cannot start: "+p.tool, p.tool)
	}
	return proc, nil
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

// command returns the words of a build command in a directory.
func command(ws *workspace.Project, tool, dir, configuration string) ([]string, *errcode.Fault) {
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
		if !hasScript(ws, packageOf(ws, dir), "build") {
			return nil, errcode.New("CFG-002", "package.json has no scripts.build", "scripts.build")
		}
		return []string{"npm", "run", "build"}, nil
	case "dotnet":
		project, err := dotnetProject(ws, dir)
		if err != nil {
			return nil, err
		}
		return []string{"dotnet", "build", project, "-c", configuration, "--nologo"}, nil
	}
	return []string{"make"}, nil
}

// packageOf returns the package.json that npm finds from a directory: the nearest one above it.
func packageOf(ws *workspace.Project, dir string) string {
	for ; dir != "" && dir != "."; dir = path.Dir(dir) {
		file := path.Join(dir, "package.json")
		if sum, err := ws.Hash(file); err == nil && sum != "" {
			return file
		}
	}
	return "package.json"
}

// hasScript reports whether a package.json has a script of a name.
func hasScript(ws *workspace.Project, file, name string) bool {
	text, _, err := ws.Read(file)
	if err != nil || !jsonx.Check(text, jsonx.MaxDepth).OK() {
		return false
	}
	var scripts, script [1]jsonx.Value
	jsonx.Pick(text, []string{"scripts"}, scripts[:])
	if scripts[0].Kind != jsonx.ObjectStart {
		return false
	}
	jsonx.Pick(scripts[0].Raw, []string{name}, script[:])
	return script[0].Kind == jsonx.String
}

// dotnetProject returns the only solution of a directory, else its only project.
func dotnetProject(ws *workspace.Project, dir string) (string, *errcode.Fault) {
	for _, ends := range [][]string{{".sln"}, projectFiles} {
		if found := ending(filepath.Join(ws.Root(), dir), ends); len(found) == 1 {
			return found[0], nil
		} else if len(found) > 1 {
			break
		}
	}
	return "", errcode.New("CFG-002", "not exactly one solution or project", "build.project")
}

// projectFiles are the extensions of .NET projects.
var projectFiles = []string{".csproj", ".fsproj", ".vbproj"}

// ending returns the files of a directory with one of the extensions; one that cannot be read has
// none.
func ending(dir string, ends []string) (found []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() && slices.Contains(ends, filepath.Ext(e.Name())) {
			found = append(found, e.Name())
		}
	}
	return found
}

// runTool runs a build command to its end, its time limit, or until it is aborted.
func (j *job) runTool(prog *program, seconds int) *errcode.Fault {
	r, w, err := os.Pipe()
	if err != nil {
		return errcode.New("RES-004", "no pipe")
	}
	defer func() { _ = r.Close() }() // only read
	proc, failed := prog.start(w)
	_ = w.Close() // the process has its own
	if failed != nil {
		return failed
	}
	lines := newCounter(prog.tool)
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
			return errcode.New("IPC-010", "")
		}
		return errcode.New("BLD-004", "", strconv.Itoa(seconds))
	}
	lines.end()
	j.w.Build = projects.BuildResult{ExitCode: code, Warnings: lines.warnings, Errors: lines.errors, Missing: lines.missing, Tail: lines.tail()}
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
	defer proc.Descendants().Kill() // those that left the group
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
