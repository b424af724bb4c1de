package doctor

import (
	"context"
	"os"
	"syscall"

	"trunkline/handlers/toolhost/manifest"
)

// directories looks at those of the settings, but for that of the store, and at manifests of tools.
func directories(_ context.Context, s *subject) (found []Finding) {
	const fix = "make the directory, or name one that this user can use"
	look := func(rate func(key, fix, format string, args ...any) Finding, key string, dirs ...string) {
		for _, dir := range dirs {
			if dir == "" {
				continue
			}
			if err := isDirectory(dir); err != nil {
				found = append(found, rate(key, fix, "%v", err))
			} else {
				found = append(found, ok(key, "%s is a directory", dir))
			}
		}
	}
	c := s.cfg
	look(fail, "threads.supervisor_workdir", c.Threads.SupervisorWorkdir)
	look(warn, "exacta.allowed_roots", c.Exacta.AllowedRoots...)
	look(warn, "exacta.diagnostics_dirs", c.Exacta.DiagnosticsDirs...)
	if len(c.Toolhost.ListenAddr) > 0 {
		look(fail, "toolhost.root", c.Toolhost.Root)
		if _, _, err := manifest.LoadAll(c.Toolhost.Plugins); err != nil {
			found = append(found, fail("toolhost.plugins", "name manifests that this user can read, or directories of them", "%v", err))
		} else {
			found = append(found, ok("toolhost.plugins", "all manifests can be read"))
		}
	}
	if found == nil {
		found = append(found, skip("", "no directory is named"))
	}
	return found
}

// isDirectory returns why dir is no directory.
func isDirectory(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &os.PathError{Op: "stat", Path: dir, Err: syscall.ENOTDIR}
	}
	return err
}
