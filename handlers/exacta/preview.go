package exacta

import (
	"bytes"
	"cmp"
	"go/build"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"trunkline/engine/projects/diff"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/secret"
	"trunkline/handlers/exacta/workspace"
)

const (
	defaultPreview = 300                    // seconds
	startedAfter   = 250 * time.Millisecond // a program that lives so long has started
)

// preview runs the program of the project to its end (exacta §4.14).
func (j *job) preview(seconds int) *errcode.Fault {
	seconds = cmp.Or(seconds, defaultPreview)
	config, tool, err := j.toolchain()
	if err != nil {
		return err
	}
	argv := start(j.p.disk.ws, tool, directory(config))
	if argv == nil {
		return errcode.New("BLD-005", "nothing to run by "+tool)
	}
	prog, err := j.find(tool, argv, configurationOf(config), config)
	if err != nil {
		return err
	}
	if err := j.act(); err != nil {
		return err
	}
	tmp, failed := os.MkdirTemp("", "trunkline-preview-")
	if failed != nil {
		return errcode.New("FS-002", "no directory for temporary files", "TMPDIR")
	}
	defer func() { _ = os.RemoveAll(tmp) }() // a process that left the group may still write there
	prog.env = slices.DeleteFunc(prog.env, func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return name == "TMPDIR" || name == "TEMP" || name == "TMP"
	})
	prog.env = append(prog.env, "TMPDIR="+tmp, "TEMP="+tmp, "TMP="+tmp)
	return j.show(prog, time.Duration(seconds)*time.Second)
}

// show runs a program whose output goes nowhere, and reports that it started.
func (j *job) show(prog *program, within time.Duration) *errcode.Fault {
	null, failed := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if failed != nil {
		return errcode.New("RES-004", "no null device")
	}
	defer func() { _ = null.Close() }() // what is written to it goes nowhere
	proc, err := prog.start(null)
	if err != nil {
		return err
	}
	ended, late := make(chan struct{}), make(chan bool, 1)
	go func() {
		j.w.Build.ExitCode = proc.Wait()
		close(ended)
	}()
	go func() { late <- j.watch(proc, ended, within) }()
	alive := time.NewTimer(startedAfter)
	defer alive.Stop()
	select {
	case <-ended:
		<-late
		if code := j.w.Build.ExitCode; code != 0 {
			return errcode.New("BLD-005", "exit_code: "+strconv.Itoa(code))
		}
		return nil
	case <-alive.C:
		j.p.post(event{started: j.w})
	}
	<-ended
	j.w.Late = <-late && !j.stopped()
	return nil
}

// start returns the words that run the program of a directory, nil if none is known.
func start(ws *workspace.Project, tool, dir string) []string {
	switch tool {
	case "go":
		if isMain(ws, dir) {
			return []string{"go", "run", "."}
		}
		if name := onlyMain(ws, dir); name != "" {
			return []string{"go", "run", "./cmd/" + name}
		}
	case "cargo":
		return []string{"cargo", "run"}
	case "npm":
		if hasScript(ws, packageOf(ws, dir), "start") {
			return []string{"npm", "start"}
		}
	case "make":
		if hasTarget(ws, dir, "run") {
			return []string{"make", "run"}
		}
	case "dotnet":
		if found := ending(filepath.Join(ws.Root(), dir), projectFiles); len(found) == 1 {
			return []string{"dotnet", "run", "--project", found[0]}
		}
	}
	return nil
}

// isMain reports whether a directory has a Go program, by the files that this system builds.
func isMain(ws *workspace.Project, dir string) bool {
	at := build.Default
	at.OpenFile = func(file string) (io.ReadCloser, error) {
		rel, err := filepath.Rel(ws.Root(), file)
		if err != nil {
			return nil, err
		}
		text, _, fail := ws.Read(filepath.ToSlash(rel))
		if fail != nil {
			return nil, fail
		}
		return io.NopCloser(bytes.NewReader(text)), nil
	}
	found, err := at.ImportDir(filepath.Join(ws.Root(), dir), 0)
	return err == nil && found.IsCommand()
}

// onlyMain returns the name of the only Go program in the directory cmd, empty if there are none or
// more.
func onlyMain(ws *workspace.Project, dir string) (name string) {
	cmd := path.Join(dir, "cmd")
	entries, _ := os.ReadDir(filepath.Join(ws.Root(), cmd)) // one that cannot be read has none
	for _, e := range entries {
		if !e.IsDir() || !isMain(ws, path.Join(cmd, e.Name())) {
			continue
		}
		if name != "" {
			return ""
		}
		name = e.Name()
	}
	return name
}

// hasTarget reports whether the makefile of a directory has a rule for a target.
func hasTarget(ws *workspace.Project, dir, target string) bool {
	for _, name := range [...]string{"GNUmakefile", "makefile", "Makefile"} { // the order of make
		text, _, err := ws.Read(path.Join(dir, name))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			left, right, ok := strings.Cut(line, ":")
			if ok && left != "" && left[0] != '\t' && left[0] != '#' && !strings.HasPrefix(strings.TrimLeft(right, ":"), "=") && slices.Contains(strings.Fields(left), target) {
				return true
			}
		}
		return false
	}
	return false
}

// apply does an ApplyDiffSet (exacta §4.12).
func (j *job) apply() *errcode.Fault {
	changes, places, err := j.changes()
	if err != nil {
		return err
	}
	if err := j.act(); err != nil {
		return err
	}
	ws := j.p.disk.ws
	point, err := ws.NewPoint(j.w.Point.String(), workspace.DiffSetPoint, j.p.srv.cfg.Clock.Text())
	if err != nil {
		return err
	}
	err = j.commit(point, changes)
	if err != nil {
		if undo := point.Undo(0); undo != nil {
			return undo
		}
		_ = point.Drop()
		return placed(err, changes, places)
	}
	j.w.Applied, j.w.Lost = len(changes), point.Lost
	_ = ws.Prune(point.ID) // no execution runs; older points may stay
	return nil
}

func (j *job) commit(point *workspace.Point, changes []workspace.Change) *errcode.Fault {
	if err := point.Add(changes...); err != nil {
		return err
	}
	if err := point.Prepare(); err != nil {
		return err
	}
	if j.stopped() {
		return errcode.New("IPC-010", "")
	}
	if err := point.Commit(nil); err != nil {
		return err
	}
	return point.Seal()
}

// placed names the diff that a fault of the disk is about (exacta §4.12).
func placed(err *errcode.Fault, changes []workspace.Change, places []string) *errcode.Fault {
	for k := range changes {
		if strings.HasSuffix(err.Detail, ": "+changes[k].Path) {
			return errcode.New(err.Code, places[k]+err.Detail, err.Values...)
		}
	}
	return err
}

// changes checks all diffs of a set against the tree (exacta §4.16), and returns where in the set
// each change stands.
func (j *job) changes() (out []workspace.Change, places []string, err *errcode.Fault) {
	if _, err := j.p.disk.config(); err != nil {
		return nil, nil, err
	}
	seen := make(map[string]bool)
	for i, text := range j.w.Request.Args.Diffs {
		at := "diffs[" + strconv.Itoa(i) + "] "
		patch, bad := diff.Parse(text)
		if bad != nil {
			return nil, nil, bad.Fault(at)
		}
		if patch.Op == diff.None {
			continue
		}
		old, err := j.target(patch, at, text, seen)
		if err != nil {
			return nil, nil, err
		}
		data, bad := patch.Apply(old)
		if bad != nil {
			return nil, nil, bad.Fault(at)
		}
		out = append(out, workspace.Change{Path: patch.Path, Op: opOf(patch.Op), Data: data, Pre: sumOf(old)})
		places = append(places, at)
	}
	return out, places, nil
}

// target makes the checks of rule 6 of exacta §4.16 and returns the content of a target.
func (j *job) target(patch *diff.Patch, at, text string, seen map[string]bool) ([]byte, *errcode.Fault) {
	path := patch.Path
	if j.p.disk.rules.Load().Denied(path, false) {
		return nil, errcode.New("SEC-002", at+"denied: "+path, path)
	}
	old, err := j.read(path, patch.Op)
	if err != nil {
		return nil, errcode.New(err.Code, at+err.Detail, err.Values...)
	}
	if secret.Find([]byte(text)) {
		return nil, errcode.New("SEC-003", at+"secret: in "+path) // without "in" the path is redacted
	}
	if seen[path] {
		return nil, errcode.New("VAL-003", at+"duplicate_target: "+path)
	}
	if patch.Op == diff.Create {
		if err := j.misplaced(path, at, seen); err != nil {
			return nil, err
		}
	}
	seen[path] = true
	return old, nil
}

// misplaced refuses a new file whose directory is a file, or is a target of the set, and one that
// is the directory of another target.
func (j *job) misplaced(path, at string, seen map[string]bool) *errcode.Fault {
	for i, c := range path {
		if c != '/' {
			continue
		}
		if sum, _ := j.p.disk.ws.Hash(path[:i]); sum != "" || seen[path[:i]] {
			return errcode.New("FS-001", at+"not_a_directory: "+path[:i], path)
		}
	}
	for other := range seen {
		if strings.HasPrefix(other, path+"/") {
			return errcode.New("SEC-002", at+"not_regular: "+path, path)
		}
	}
	return nil
}
