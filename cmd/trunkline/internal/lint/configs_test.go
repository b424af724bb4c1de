package lint

import (
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rigRooms have what tests use and the program does not.
var rigRooms = []string{
	"bench", "fuzz", "engine/orchestration/orchtest",
	"handlers/ipc/crashtest",
}

// Why the program leaves a field of a Config at its default.
const (
	defaultClock = "the clock of the process is the default"
	defaultDisk  = "the disk is the default"
	defaultBound = "the default bounds the program; tests reach it with less"
	defaultSize  = "the default is right on any machine; tests show that its size does not matter"
	noPartition  = "the stream and the directory of a partition have its number in their names, and existing blocks have 0"
)

// leftDefault lists the fields of a Config that the program never sets, each with its reason.
var leftDefault = map[string]string{
	"engine/cluster/peer.ForwardConfig.Max":       defaultBound,
	"engine/table.Config.Shards":                  defaultSize,
	"handlers/ipc/route.Config.MaxInFlight":       defaultBound,
	"engine/idem.Config.MaxWaiters":               defaultBound,
	"engine/idem.Config.Shards":                   defaultSize,
	"engine/journal.Config.Elapsed":               defaultClock,
	"engine/journal.Config.MaxBlockBytes":         defaultSize,
	"engine/journal.Config.MaxQueueBytes":         defaultBound,
	"engine/journal.Config.MaxQueueRecords":       defaultBound,
	"engine/journal.Config.Now":                   defaultClock,
	"engine/journal/embedded.Config.FS":           defaultDisk,
	"engine/journal/embedded.Config.FreeBytes":    defaultDisk,
	"engine/journal/embedded.Config.Partition":    noPartition,
	"engine/journal/embedded.Config.StallTimeout": defaultBound,
	"engine/journal/embedded.Config.SyncEvery":    defaultSize,
	"engine/journal/replicated.Config.InFlight":   defaultSize,
	"engine/kernel.Config.Defaults":               "SetQuotaDefaults sets them, and the journal keeps them",
	"engine/kernel.Config.Shards":                 defaultSize,
	"engine/orchestration.Config.NewID":           "identifiers are random, and Owns decides which are taken",
	"engine/runtime.Config.Now":                   defaultClock,
	"engine/store/rows.Config.CacheBytes":         defaultSize,
	"engine/store/rows.Config.FS":                 defaultDisk,
	"engine/store/rows.Config.MemTableBytes":      defaultSize,
	"engine/store/rows.Config.StallTimeout":       defaultBound,
	"engine/stream.Config.Now":                    defaultClock,
	"engine/threadstore.Config.MaxCursors":        defaultBound,
	"engine/threadstore.TriggerConfig.MaxJobs":    defaultBound,
	"handlers/ipc.Config.AnswerBufferBytes":       defaultBound,
	"handlers/ipc.Config.FramesPerTurn":           defaultSize,
	"handlers/ipc.Config.TurnBytes":               defaultSize,
	"handlers/ipc.Config.UnsentBytes":             defaultBound,
	"handlers/ipc/route.Config.MaxCalls":          defaultBound,
	"handlers/threads.Config.Now":                 defaultClock,
	"handlers/threads/bridge.Config.Now":          defaultClock,
	"handlers/threads/supervisor.TmuxConfig.Now":  defaultClock,
	"handlers/threads/supervisor.TmuxConfig.Path": "the program is looked up in PATH",
	"handlers/toolhost.Config.Now":                defaultClock,
}

// sections are those of the settings with the fields of a Config, by their names.
var sections = map[string]string{
	"engine/bus.Config": "kernel", "engine/kernel.Config": "kernel", "engine/orchestration.Config": "kernel",
	"engine/runtime.Config": "kernel", "handlers/ipc.Config": "kernel", "handlers/exchange.HTTPConfig": "http",
	"handlers/toolhost.Config": "toolhost", "handlers/threads/token.Config": "threads", "handlers/exacta.Config": "exacta",
}

// readConfig is a Config that is no setting of a part: the file of a project.
const readConfig = "handlers/exacta/workspace.Config"

// TestTheProgramSetsWhatRigsSet is a best effort without types: each field of a Config of engine or
// handlers is set by the program, or its default is right. A field that only a rig sets has the
// rig's tests pass for a program that does not exist.
func TestTheProgramSetsWhatRigsSet(t *testing.T) {
	r := repository(t)
	const dir = "cmd/trunkline/internal/config/"
	unset := unsetFields(
		r.files,
		r.texts[dir+"settings.go"]+r.texts[dir+"config.go"]+r.texts[dir+"threads.go"]+r.texts[dir+"exacta.go"],
	)
	for _, name := range unset {
		if leftDefault[name] == "" {
			t.Errorf("%s is set by no code of the program: set it, or list why its default is right", name)
		}
	}
	for name := range leftDefault {
		if !slices.Contains(unset, name) {
			t.Errorf("%s is listed as left at its default: it is set, or gone", name)
		}
	}
}

// unsetFields returns the fields of Configs that no code of the program sets, as dir.Type.Field.
// settings are the rows that are assigned by the names of their fields.
func unsetFields(files []goFile, settings string) []string {
	unset := make(map[string]bool)
	settings = strings.ReplaceAll(settings, "_", "") // fields are matched without
	inProgram := func(f *goFile) bool { return !f.test && !anyUnder(f.dir, rigRooms) }
	for i := range files {
		f := &files[i]
		if !inProgram(f) || !anyUnder(f.dir, []string{"engine", "handlers"}) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !strings.HasSuffix(spec.Name.Name, "Config") || !spec.Name.IsExported() {
				return true
			}
			if st, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range st.Fields.List {
					for _, name := range field.Names {
						typ := f.dir + "." + spec.Name.Name
						row := regexp.MustCompile(
							`"` + sections[typ] + `\.` + strings.ToLower(name.Name) + `(secs|seconds|ms)?"`,
						)
						if name.IsExported() && typ != readConfig && !row.MatchString(settings) {
							unset[typ+"."+name.Name] = true
						}
					}
				}
			}
			return true
		})
	}
	for i := range files {
		if f := &files[i]; inProgram(f) {
			takeSet(f, unset)
		}
	}
	return slices.Sorted(maps.Keys(unset))
}

// takeSet takes out the fields that a file sets, of Configs of the packages that it imports.
func takeSet(f *goFile, unset map[string]bool) {
	dirs := make(map[string]string) // by the name in the file
	for _, s := range f.ast.Imports {
		dir, ok := strings.CutPrefix(strings.Trim(s.Path.Value, `"`), ours)
		if !ok {
			continue
		}
		name := dir[strings.LastIndex(dir, "/")+1:]
		if s.Name != nil {
			name = s.Name.Name
		}
		dirs[name] = dir
		if dir == "engine/runtime" { // its Config embeds those
			dirs["."], dirs[".."], dirs["..."] = "engine/bus", "engine/kernel", "engine/orchestration"
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			whole := n.Type
			switch generic := whole.(type) {
			case *ast.IndexExpr:
				whole = generic.X
			case *ast.IndexListExpr:
				whole = generic.X
			}
			typ, ok := whole.(*ast.SelectorExpr)
			if !ok {
				break
			}
			pkg, _ := typ.X.(*ast.Ident)
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && pkg != nil {
					if key, ok := kv.Key.(*ast.Ident); ok {
						delete(unset, dirs[pkg.Name]+"."+typ.Sel.Name+"."+key.Name)
					}
				}
			}
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				sel, ok := l.(*ast.SelectorExpr)
				if !ok || !anyUnder(f.dir, []string{"cmd", "handlers", "engine/runtime"}) { // where parts are put together
					continue
				}
				for _, dir := range dirs {
					maps.DeleteFunc(unset, func(name string, _ bool) bool {
						return strings.HasPrefix(name, dir+".") && strings.HasSuffix(name, "."+sel.Sel.Name)
					})
				}
			}
		}
		return true
	})
}

func TestUnsetFieldsFinds(t *testing.T) {
	f := func(program string, want ...string) {
		t.Helper()
		config := parseDecls(t, "type Config struct { A int\n b int }\ntype other struct { C int }\nfunc (c *Config) d() { c.A = 1 }")
		user := parseDecls(t, program)
		user.dir = "cmd/y"
		rig := parseDecls(t, `import "trunkline/engine/x"`+"\nvar _ = x.Config{A: 1}")
		rig.dir = "fuzz/kit/ipctest"
		if got := unsetFields([]goFile{config, user, rig}, ""); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", program, got, want)
		}
	}
	f(`import "trunkline/engine/x"`+"\nvar c = x.Config{}", "engine/x.Config.A")
	f(`import "trunkline/engine/x"` + "\nvar c = x.Config{A: 1}")
	f(`import e "trunkline/engine/x"` + "\nvar c = e.Config{A: 1}")
	f(`import "trunkline/engine/x"` + "\nfunc f(c *x.Config) { c.A = 1 }")
	f("func f(c *t) { c.A = 1 }", "engine/x.Config.A")
}
